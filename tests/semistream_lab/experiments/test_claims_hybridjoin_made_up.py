"""Judges of claims 1 to 60 on made-up curves: each can hold, and each can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from made_up_results import Numbers, made_up, run_of

import semistream_lab.experiments.claims  # noqa: F401  registers the judges
from semistream_lab.experiments.claims import comparing
from semistream_lab.experiments.judging import CLAIMS, Finding
from semistream_lab.experiments.plan import all_plans
from semistream_lab.experiments.point import Scalar
from semistream_lab.experiments.variants import MACHINES

H, M, X = "HYBRIDJOIN", "MESHJOIN", "X-HYBRIDJOIN"
Row = dict[str, Scalar]


def verdict(number: int, *, ranks: str = "sorted", **experiments: Numbers) -> Finding:
    return CLAIMS[number].judge(made_up(ranks=ranks, **experiments))


def rates(**of_series: Callable[[float], float]) -> Numbers:
    """Return runs with the rates of some series (with _ for -); all others serve 1,000 tuples a second."""

    def numbers(series: str, x: float) -> Row:
        rate = of_series.get(series.replace("-", "_"))
        return run_of(rate(x) if rate else 1000.0)

    return numbers


def columns(**of_column: Callable[[str, float], Scalar]) -> Numbers:
    """Return runs with these columns."""
    return lambda series, x: run_of(1000.0, **{name: value(series, x) for name, value in of_column.items()})


def test_every_claim_from_1_to_60_has_a_judge_and_an_experiment() -> None:
    assert [number for number in range(1, 61) if number not in CLAIMS] == []
    assert all(CLAIMS[number].experiment in all_plans() for number in range(1, 61))


def test_no_judge_sees_anything_in_no_results() -> None:
    for number in range(1, 61):
        with pytest.raises(LookupError):
            CLAIMS[number].judge(made_up())


LEADS = [
    (19, "hybrid_7c", H),
    (20, "hybrid_7d", H),
    (21, "hybrid_7e", H),
    (32, "x_3a", X),
    (35, "x_3a", H),
    (37, "x_3b", X),
    (41, "x_3c", X),
]


@pytest.mark.parametrize(("number", "experiment", "winner"), LEADS)
def test_a_lead_holds_only_if_it_is_there_everywhere(number: int, experiment: str, winner: str) -> None:
    ahead = rates(**{winner.replace("-", "_"): lambda _: 1200.0})
    assert verdict(number, **{experiment: ahead}).holds is True
    last = all_plans()[experiment.replace("_", "-")].x.values[-1]
    once_behind = rates(**{winner.replace("-", "_"): lambda x: 960.0 if x in (1.0, last) else 1200.0})
    behind = verdict(number, **{experiment: once_behind})
    assert behind.holds is False
    assert behind.reason


def test_a_lead_within_the_intervals_of_the_runs_is_undecided() -> None:
    for rate in (1005.0, 995.0):  # both series have intervals of 1%
        close = verdict(19, hybrid_7c=rates(HYBRIDJOIN=lambda x, rate=rate: rate if x == 2e6 else 1200.0))
        assert close.holds is None
        assert "Undecided: at 2M rows" in close.reason


def test_slightly_above_is_not_far_above() -> None:
    assert verdict(35, x_3a=rates(HYBRIDJOIN=lambda _: 2000.0)).holds is False


GROWTH: list[tuple[int, str, str, Callable[[float], float], Callable[[float], float]]] = [
    (22, "hybrid_7e", H, lambda x: 1000 * (1 + x), lambda x: 1000 * (2 - x)),
    (23, "hybrid_7e", H, lambda _: 900, lambda _: 1100),
    (42, "x_3c", X, lambda x: 1000 * (1 + x), lambda x: 1000 * (2 - x)),
    (43, "x_3c", X, lambda _: 900, lambda _: 1100),
    (44, "x_3c", X, lambda x: 1000 * (1 + x), lambda x: 1000 * min(2, 1 + x) - x),
    (45, "x_3c", H, lambda x: 1000 * (1 + x), lambda x: 1000 * (3 - x)),
    (60, "x_3c", M, lambda x: 1000 * (1.1 - 0.2 * x), lambda x: 1000.0 + x),
    (1, "hybrid_7c", M, lambda x: 1e9 / x, lambda x: 1e9 / x**0.8),
    (50, "x_4_large", X, lambda x: 2000 - 500 * abs(np.log(x / 3e6)), lambda x: 1000 + x / 1e3),
    (13, "hybrid_6", H, lambda x: 2000 - 500 * abs(np.log(x / 4e5)), lambda x: 1000 + x / 1e3),
]


@pytest.mark.parametrize(("number", "experiment", "series", "good", "bad"), GROWTH, ids=[str(row[0]) for row in GROWTH])
def test_the_shape_of_a_curve_decides(
    number: int, experiment: str, series: str, good: Callable[[float], float], bad: Callable[[float], float]
) -> None:
    name = series.replace("-", "_")
    assert verdict(number, **{experiment: rates(**{name: good})}).holds is True
    failed = verdict(number, **{experiment: rates(**{name: bad})})
    assert failed.holds is False
    assert failed.measured
    assert failed.reason


@pytest.mark.parametrize(("number", "share"), [(38, 0.7), (39, 0.5)])
def test_a_share_of_the_best_is_about_what_the_paper_says_or_not(number: int, share: float) -> None:
    assert verdict(number, x_3b=rates(X_HYBRIDJOIN=lambda _: 1000 / share)).holds is True
    assert verdict(number, x_3b=rates(X_HYBRIDJOIN=lambda _: 1000 / (share + 0.15))).holds is False


def test_others_fall_faster_only_if_all_of_them_do() -> None:
    faster = {"MESHJOIN": -1.0, "R_MESHJOIN": -1.0, "HYBRIDJOIN": -1.0, "X_HYBRIDJOIN": -0.8}

    def falling(powers: dict[str, float]) -> Numbers:
        return rates(**{name: lambda x, power=power: 1e4 * (x / 5e5) ** power for name, power in powers.items()})

    fixed = {"MESHJOIN, reads of 106 kB": -1.0, "R_MESHJOIN, tuned": -1.0}
    assert verdict(40, x_3b=falling({**faster, **fixed})).verdict == "holds"
    assert verdict(40, x_3b=falling({**faster, "MESHJOIN": -0.7})).verdict == "fails"
    either = verdict(40, x_3b=falling({**faster, **fixed, "MESHJOIN": -0.7}))
    assert either.verdict == "depends"
    assert "if it is of one size" in either.depends_on


def test_pinning_is_the_larger_step_if_it_is() -> None:
    assert verdict(36, x_3a=rates(MESHJOIN=lambda _: 900, HYBRIDJOIN=lambda _: 1000, X_HYBRIDJOIN=lambda _: 1500)).holds
    assert not verdict(
        36, x_3a=rates(MESHJOIN=lambda _: 500, HYBRIDJOIN=lambda _: 1000, X_HYBRIDJOIN=lambda _: 1500)
    ).holds


@pytest.mark.parametrize(("tuples_per_read", "holds"), [(750, True), (500, False), (2000, False)])
def test_about_a_third_of_the_reading_is_saved_or_not(tuples_per_read: float, holds: bool) -> None:
    def numbers(series: str, x: float) -> Row:  # noqa: ARG001
        return run_of(1000.0, tuples_per_read=tuples_per_read if series == X else 500)

    assert verdict(33, x_3a=numbers).holds is holds


def test_processing_times_are_compared_with_their_cause() -> None:
    def stays(hybrid: float, hybrid_at_2000: float) -> Numbers:
        waits = {"125/s": hybrid, "500/s": hybrid, "2,000/s": hybrid_at_2000}
        return columns(
            processing_seconds=lambda series, _: 20.0 if series.startswith(M) else waits[series.split(", ")[1]]
        )

    assert verdict(14, hybrid_7a_rates=stays(8.0, 8.0)).holds is True
    failed = verdict(14, hybrid_7a_rates=stays(30.0, 30.0))
    assert (failed.holds, failed.depends_on) == (False, "")
    assert "Little" in failed.reason
    either = verdict(14, hybrid_7a_rates=stays(8.0, 30.0))
    assert either.verdict == "depends"
    assert "holds at 500/s, fails at 2,000/s" in either.depends_on


def test_a_full_queue_is_named_beside_the_arrival_rates() -> None:
    times = {"INLJ": 0.006, M: 20.0, H: 30.0}
    slow = columns(processing_seconds=lambda series, _: 20.0 if series.startswith(M) else 30.0)
    full = columns(mean_wait_seconds=lambda series, _: times[series])
    assert "In a full queue the factor is 1.50 to 1.50" in verdict(14, hybrid_7a_rates=slow, hybrid_7a=full).reason
    assert "has not been run" in verdict(14, hybrid_7a_rates=slow).reason
    assert verdict(15, hybrid_7a=columns(mean_wait_seconds=lambda series, _: times[series])).holds is True
    assert verdict(15, hybrid_7a=columns(mean_wait_seconds=lambda _, x: x)).holds is False


def waits(inlj: float, growth: float = 1.0) -> Numbers:
    return columns(
        mean_wait_seconds=lambda series, x: {"INLJ": inlj * (x / 125) ** growth, M: 1000.0, H: 0.2}[series],
        busy_share=lambda *_: 0.8,
        taken_per_read=lambda *_: 120.0,
        idle_seconds_per_read=lambda _, x: 120.0 / x * 0.99,
    )


def test_waiting_times_decide_who_waits_least_at_a_trickle() -> None:
    assert verdict(17, hybrid_7b=waits(0.02)).holds is True
    assert verdict(17, hybrid_7b=waits(0.5)).holds is False
    assert verdict(18, hybrid_7b=waits(0.02)).holds is True
    assert verdict(18, hybrid_7b=waits(0.02, growth=0.0)).holds is False
    assert verdict(16, hybrid_7b=waits(0.02)).holds is True
    assert verdict(8, hybrid_7b=waits(0.02)).holds is True


def hard(**changes: Scalar) -> Numbers:
    """Return runs on hard inputs as the theorems want them, but for some changes."""
    row: Row = {
        "reads_in_vain": 0,
        "fewest_answered": 1,
        "min_gap_queues": 1.2,
        "reads_per_tuple": 0.5,
        "hybridjoin_unreferenced_reads": 0,
        "meshjoin_unreferenced_reads": 500,
    }
    for algorithm, reads in (("hybridjoin", 1000), ("meshjoin", 1000), ("inlj", 1000)):
        sequential = algorithm == "meshjoin"
        row |= {f"{algorithm}_{name}": 0 for name in ("removals", "appends", "frequency_checks", "hand_overs")}
        row |= {
            f"{algorithm}_seeks": 0 if sequential else reads,
            f"{algorithm}_continuations": reads if sequential else 0,
            f"{algorithm}_bytes_read": reads * (8_160 if algorithm == "inlj" else 106_080),
            f"{algorithm}_probes": reads * (68 if algorithm == "inlj" else 884),
            f"{algorithm}_outputs": reads,
            f"{algorithm}_takes": reads,
            f"{algorithm}_tuples": reads,
            f"{algorithm}_reads": reads,
        }
    return lambda *_: {**row, **changes}


@pytest.mark.parametrize(
    ("number", "changes"),
    [
        (2, {"reads_in_vain": 1}),
        (3, {"min_gap_queues": 0.99}),
        (4, {"reads_per_tuple": 1.01}),
        (5, {"hybridjoin_tuples": 500}),
        (6, {"hybridjoin_tuples": 200}),
        (25, {"hybridjoin_unreferenced_reads": 3}),
    ],
)
def test_one_counter_example_refutes_a_theorem(number: int, changes: dict[str, Scalar]) -> None:
    assert verdict(number, hybrid_theorems=hard()).holds is True
    assert verdict(number, hybrid_theorems=hard(**changes)).holds is False


def test_bounds_are_held_against_other_costs_without_running_again() -> None:
    evidence = made_up(hybrid_theorems=hard())
    slow_seek = next(variant for variant in MACHINES if variant.name == "seek doubled")
    assumed = CLAIMS[5].judge(evidence)
    assert CLAIMS[5].judge(replace(evidence, variant=slow_seek)).measured != assumed.measured


def test_a_silence_shows_who_goes_on() -> None:
    left = columns(left_waiting=lambda series, _: 5000 if series == M else 0, seconds_into_silence=lambda *_: 20.0)
    assert verdict(10, hybrid_silence=left).holds is True
    assert verdict(26, hybrid_silence=left).holds is True
    other = columns(left_waiting=lambda series, _: 0 if series == M else 7, seconds_into_silence=lambda *_: 20.0)
    assert verdict(10, hybrid_silence=other).holds is False
    assert verdict(26, hybrid_silence=other).holds is False


@pytest.mark.parametrize(
    ("number", "experiment", "column"), [(7, "hybrid_3", "uses_per_page"), (58, "x_5", "match_probability")]
)
def test_use_must_fall_all_along_the_table(number: int, experiment: str, column: str) -> None:
    assert verdict(number, **{experiment: columns(**{column: lambda _, x: 1 / x})}).holds is True
    assert verdict(number, **{experiment: columns(**{column: lambda _, x: 1.0 + x % 2})}).holds is False


def test_the_generator_follows_its_rules_or_not() -> None:
    def sales(shift: float) -> Numbers:
        return columns(sales_share=lambda series, x: min(1.0, x**0.3 + shift + (0.1 if "0." not in series else 0.0)))

    assert verdict(29, hybrid_10a=sales(0.08)).holds is True
    assert verdict(29, hybrid_10a=sales(0.2)).holds is False
    curve = {"exponent 0.8": 0.7, "exponent 0.9": 0.79, "exponent 1": 0.9, "exponent 1, the paper's generator": 0.9}
    assert verdict(59, hybrid_10a=columns(sales_share=lambda series, _: curve[series])).holds is True
    assert verdict(59, hybrid_10a=columns(sales_share=lambda series, _: curve[series] - 0.2)).holds is False
    line = columns(mean_rank=lambda _, x: x, frequency=lambda _, x: 0.07 / x)
    bent = columns(mean_rank=lambda _, x: x, frequency=lambda _, x: 0.07 / x**1.2)
    assert verdict(30, hybrid_10b=line).holds is True
    assert verdict(30, hybrid_10b=bent).holds is False
    assert verdict(31, hybrid_11=columns(hurst_exponent=lambda *_: 0.9, dispersion=lambda *_: 300)).holds is True
    assert verdict(31, hybrid_11=columns(hurst_exponent=lambda *_: 0.5, dispersion=lambda *_: 1.0)).holds is False


def grid(best_pinned: float, best_read: float) -> Numbers:
    """Return a tuning grid of 50 MB with one peak."""

    def numbers(series: str, x: float) -> Row:
        read = float(series.removesuffix(" kB")) * 1e3
        pinned = max(x * 5e7, read)
        away = 0.05 * abs(np.log2(read / best_read))
        rate = 30_000 * (pinned / best_pinned) ** 0.1 if pinned < best_pinned else 30_000 - (pinned - best_pinned) / 2e3
        return run_of(rate * (1 - away), memory_disk_buffer=round(read), memory_cache=round(pinned))

    return numbers


def test_a_tuning_grid_with_one_peak_is_as_the_paper_says() -> None:
    peak = grid(3.4e6, 848e3)
    for number in (49, 51, 52):
        assert verdict(number, x_4=peak).holds is True, number
    at_the_edge = grid(1e5, 100e3)
    for number in (49, 52):
        assert verdict(number, x_4=at_the_edge).holds is False, number


def test_what_the_pinned_part_serves_is_counted() -> None:
    served = columns(pinned_tuples=lambda _, x: x / 5e7 * 4.2e5)
    assert verdict(46, x_3d=served).holds is True
    assert verdict(47, x_3d=served).holds is True
    assert verdict(48, x_3d=served).holds is True
    flat = columns(pinned_tuples=lambda *_: 6e5)
    for number in (46, 47, 48):
        assert verdict(number, x_3d=flat).holds is False


@pytest.mark.parametrize(("number", "experiment"), [(55, "x_7a"), (56, "x_7b")])
def test_tuning_pays_only_if_it_does_so_everywhere(number: int, experiment: str) -> None:
    assert verdict(number, **{experiment: rates(tuned=lambda _: 1500.0)}).holds is True
    assert verdict(number, **{experiment: rates(tuned=lambda x: 900.0 if x in (5e5, 5e7) else 1500.0)}).holds is False


def test_shapes_are_told_apart() -> None:
    assert comparing.has_one_maximum([1, 2, 3, 2, 1])
    assert not comparing.has_one_maximum([1, 2, 3])
    assert not comparing.has_one_maximum([1, 3, 2, 3, 1])
    assert comparing.has_one_maximum([1, 3, 2.99, 3.01, 1], tolerance=0.01)
    assert comparing.slope([1, 2, 4], [3, 6, 12]) == pytest.approx(1.0)
    assert comparing.rises([1, 1, 2])
    assert not comparing.rises([1, 0.9])
