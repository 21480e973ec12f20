"""Judges of claims 61 to 70 and 93 to 108 on made-up curves: each can hold, and each can fail."""

from dataclasses import replace

import pytest
from made_up_results import Numbers, made_up, run_of

import semistream_lab.experiments.claims  # noqa: F401  registers the judges
from semistream_lab.experiments.claims.other_settings import OtherSetting, in_other_settings
from semistream_lab.experiments.evidence import Evidence
from semistream_lab.experiments.judging import CLAIMS, Finding
from semistream_lab.experiments.plan import all_plans
from semistream_lab.experiments.variants import AS_ASSUMED, MACHINES


def verdict(number: int, *, ranks: str = "sorted", **experiments: Numbers) -> Finding:
    return CLAIMS[number].judge(made_up(ranks=ranks, **experiments))


def test_every_claim_from_61_to_108_has_a_judge() -> None:
    assert [number for number in range(61, 109) if number not in CLAIMS] == []


def test_every_claim_names_an_experiment_that_exists() -> None:
    for number in range(61, 109):
        assert CLAIMS[number].experiment in all_plans()


def test_no_judge_sees_anything_in_no_results() -> None:
    for number in range(61, 109):
        with pytest.raises(LookupError):
            CLAIMS[number].judge(made_up())


def ahead(winner: str, factor: float, *, slope: float = 0.0) -> Numbers:
    """Return runs in which one series serves `factor` times as much as all others."""

    def numbers(series: str, x: float) -> dict[str, object]:
        return run_of(10_000 * (1 + slope * x) * (factor if series == winner else 1.0))

    return numbers  # type: ignore[return-value]


OX, P, OP = "Optimised X-HYBRIDJOIN", "P-CACHEJOIN", "OP-CACHEJOIN"
LEADS = [
    (61, "optx_6a", OX),
    (62, "optx_6b", OX),
    (94, "op_4a", P),
    (96, "op_4b", P),
    (97, "op_4c", P),
    (98, "op_6a", OP),
    (99, "op_6b", OP),
    (100, "op_6c", OP),
]


@pytest.mark.parametrize(("number", "experiment", "winner"), LEADS)
def test_a_lead_holds_only_if_it_is_there_everywhere(number: int, experiment: str, winner: str) -> None:
    assert verdict(number, **{experiment: ahead(winner, 1.5)}).holds is True
    behind = verdict(number, **{experiment: ahead(winner, 0.98)})
    assert behind.holds is False
    assert behind.reason


def test_a_lead_within_the_noise_is_undecided() -> None:
    for factor in (1.005, 0.995):
        close = verdict(94, op_4a=ahead(P, factor))
        assert close.holds is None
        assert "95% intervals" in close.reason
    assert not verdict(94, op_4a=ahead(P, 1.5)).reason


def test_what_decides_otherwise_with_own_bandwidth_depends_on_it() -> None:
    def seeks(share: float) -> Numbers:
        def numbers(series: str, x: float) -> dict[str, object]:  # noqa: ARG001
            half = share if series == OP else 1.0
            return run_of(1e4, operations_seeks=1000 * half, operations_bytes_read=106_080_000 * half)

        return numbers  # type: ignore[return-value]

    wide = verdict(99, op_6b=ahead(OP, 1.1), op_6b_connections=ahead(OP, 1.6))
    reading = verdict(101, op_6b=seeks(0.83), op_6b_connections=seeks(0.5))
    for finding in (wide, reading, verdict(102, op_6b=seeks(0.83), op_6b_connections=seeks(0.5))):
        assert finding.verdict == "depends"
        assert finding.depends_on == (
            "whether two connections share the disk's bandwidth: "
            "fails if they do, holds if each has a bandwidth of its own"
        )
    assert "1.10 times" in wide.measured
    assert "1.60 times" in wide.measured
    assert verdict(99, op_6b=ahead(OP, 1.6), op_6b_connections=ahead(OP, 1.9)).verdict == "holds"


def test_what_decides_otherwise_on_the_machine_of_the_axis_depends_on_the_processor() -> None:
    finding = verdict(94, op_4a=ahead(P, 1.1), op_6a_slow_processor=ahead(P, 0.9))
    assert finding.verdict == "depends"
    assert finding.depends_on.startswith("the processor: holds as assumed, fails with a processor 28 times as slow")
    undecided = verdict(94, op_4a=ahead(P, 1.005), op_6a_slow_processor=ahead(P, 0.9))
    assert (undecided.holds, undecided.depends_on) == (None, "")
    assert "not run with a processor 28 times as slow" in verdict(94, op_4a=ahead(P, 1.1)).measured


def test_other_settings_are_not_asked_for_with_other_constants() -> None:
    asked = []

    def asking(_: Evidence, experiment: str) -> Finding:
        asked.append(experiment)
        return Finding(True, "")

    other = OtherSetting("op-6b-connections", "the bandwidth", "shared", "not shared")
    for variant in (AS_ASSUMED, MACHINES[0]):
        in_other_settings(replace(made_up(), variant=variant), "op-6b", asking, other)
    assert asked == ["op-6b", "op-6b-connections", "op-6b"]


def test_repetitions_decide_what_one_run_does_not() -> None:
    plan = all_plans()["op-4a"]

    def evidence_of(spread: float) -> Evidence:
        rows = {
            planned.point.digest: run_of(
                (1.03 if planned.series == P else 1.0) * 1e4 * (1 + spread * (-1) ** planned.point.seed)
            )
            for planned in plan.points(variants=False)
        }
        return Evidence({plan.id: plan}, rows.get)

    assert CLAIMS[94].judge(evidence_of(0.005)).holds is True
    assert CLAIMS[94].judge(evidence_of(0.03)).holds is None


def test_a_wide_margin_is_more_than_a_narrow_one() -> None:
    assert verdict(99, op_6b=ahead(OP, 1.1)).holds is False


def grid(peak_share: float, peak_read: float) -> Numbers:
    """Return a tuning grid with one peak: rates fall with the distance from it in powers of two."""

    def numbers(series: str, x: float) -> dict[str, object]:
        away = abs(float(series) / peak_read - 1) if float(series) > peak_read else abs(peak_read / float(series) - 1)
        rise = min(1.0, (x / peak_share) ** 0.3) if x <= peak_share else 1 - 0.5 * (x - peak_share)
        return run_of(30_000 * rise / (1 + 0.2 * away))

    return numbers  # type: ignore[return-value]


@pytest.mark.parametrize("number", [63, 64, 65])
def test_a_grid_with_one_peak_is_as_the_paper_says(number: int) -> None:
    assert verdict(number, optx_4=grid(0.2, 884)).holds is True


@pytest.mark.parametrize("number", [63, 64])
def test_a_grid_that_only_falls_is_not(number: int) -> None:
    assert verdict(number, optx_4=grid(0.001, 10)).holds is False


def test_sizes_that_depend_on_each_other_have_no_intersection() -> None:
    plan = all_plans()["optx-4"]
    shares, reads = plan.x.values, [series.label for series in plan.series]

    def numbers(series: str, x: float) -> dict[str, object]:
        # One column and one row are good on average; the best cell is in neither.
        if x == shares[0]:
            return run_of(12_000)
        if series == reads[-1]:
            return run_of(10_000)
        return run_of(20_000 if (x, series) == (shares[-1], reads[0]) else 1_000)

    assert verdict(65, optx_4=numbers).holds is False  # type: ignore[arg-type]


def test_more_tuples_that_need_the_disk_must_be_more_everywhere() -> None:
    def waiting(gain: float) -> Numbers:
        return lambda series, x: {"disk_bound_tuples": x / 172 * (gain if series.startswith("Opt") else 1)}

    assert verdict(69, optx_waiting=waiting(1.05)).holds is True
    assert verdict(69, optx_waiting=waiting(1.0)).holds is False


def test_memory_is_judged_by_its_parts() -> None:
    def parts(cache: float, waiting: float, disk: float, handover: float) -> Numbers:
        return lambda *_: run_of(
            1e4,
            memory_cache=cache,
            memory_waiting_tuples=waiting,
            memory_disk_buffer=disk,
            memory_handover_buffer=handover,
        )

    assert verdict(70, optx_7=parts(5e6, 44e6, 1e5, 0)).holds is True
    assert verdict(70, optx_7=parts(1e6, 1e7, 39e6, 0)).holds is False
    assert verdict(108, op_4b=parts(5e6, 42e6, 1e5, 2e6)).holds is True
    assert verdict(108, op_4b=parts(5e6, 20e6, 1e5, 25e6)).holds is False


def test_the_buffer_between_phases_is_judged_where_the_stream_is_ahead() -> None:
    def buffer(full: float, share: float) -> Numbers:
        return lambda series, _: {
            "full_share": full if "ahead" in series else 0.0,
            "empty_share": 0.0 if "ahead" in series else 1.0,
            "handover_wait_seconds": 1.0,
            "handover_wait_share": share if "ahead" in series else 0.01,
        }

    assert verdict(103, op_handover=buffer(0.02, 0.0)).holds is True
    assert verdict(103, op_handover=buffer(0.99, 0.0)).holds is False
    assert verdict(104, op_handover=buffer(0.0, 0.01)).holds is True
    assert verdict(104, op_handover=buffer(0.0, 0.3)).holds is False


def test_only_what_comes_beyond_two_megabytes_counts_for_the_buffer() -> None:
    def best_at(size: float) -> Numbers:
        return lambda _, x: run_of(1e4 - 1e3 * abs(x - size) / size)

    two = verdict(93, op_3=best_at(2e6))
    assert two.holds is True
    assert not two.reason
    small = verdict(93, op_3=best_at(1e5))
    assert small.holds is True
    assert "0.1 MB" in small.reason
    assert verdict(93, op_3=best_at(8e6)).holds is False


def test_a_factor_that_grows_with_the_table_is_not_larger_for_small_ones() -> None:
    def factor(small: float, large: float) -> Numbers:
        return lambda series, x: run_of(1e4 * ((small if x < 1e6 else large) if series == P else 1))

    assert verdict(95, op_4a=factor(1.3, 1.1)).holds is True
    assert verdict(95, op_4a=factor(1.1, 1.3)).holds is False


@pytest.mark.parametrize("number", [101, 102])
def test_loads_in_parallel_are_judged_by_what_reading_costs(number: int) -> None:
    def seeks_of(share: float, size: float) -> Numbers:
        return lambda series, _: run_of(
            1e4,
            operations_seeks=1000 * (share if series == OP else 1),
            operations_bytes_read=size * 1000,
        )

    assert verdict(number, op_6b=seeks_of(0.5, 1.0)).holds is True
    assert verdict(number, op_6b=seeks_of(0.5, 1e5)).holds is False


def test_reading_is_the_major_cost_unless_something_else_costs_more() -> None:
    assert verdict(106, op_4b=lambda *_: run_of(1e4, tuples_per_read=500)).holds is True
    assert verdict(106, op_4b=lambda *_: run_of(1e4, tuples_per_read=50_000)).holds is False


def test_a_switch_is_judged_beside_a_read() -> None:
    def switch(seconds: float, *, direct: bool = True) -> Numbers:
        return lambda *_: {
            "switch_seconds": seconds,
            "read_seconds": 0.016,
            "model_read_seconds": 1e9,
            "ready_share": 0.9,
            "direct": direct,
        }

    assert verdict(105, op_switching=switch(5e-5)).holds is True
    assert verdict(105, op_switching=switch(5e-3)).holds is False
    assert verdict(105, op_switching=switch(5e-5, direct=False)).holds is None


def test_r_meshjoin_must_be_ahead_by_little_with_a_buffer_of_its_own() -> None:
    def rates(gain: float, own: float) -> Numbers:
        def numbers(series: str, x: float) -> dict[str, object]:
            reduced = series == "R-MESHJOIN"
            return run_of(
                1e10 / x * (gain if reduced else 1), memory_disk_buffer=3e5 + (own * x if reduced else x / 10)
            )

        return numbers  # type: ignore[return-value]

    assert verdict(107, op_meshjoin=rates(1.05, 0.0)).verdict == "holds"
    assert verdict(107, op_meshjoin=rates(1.005, 0.0)).holds is None
    assert verdict(107, op_meshjoin=rates(0.97, 0.0)).verdict == "fails"
    assert verdict(107, op_meshjoin=rates(1.05, 0.1)).holds is False
