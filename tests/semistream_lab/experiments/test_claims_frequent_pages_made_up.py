"""Judges of claims 71 to 92 on made-up curves: each can hold, and each can fail, as the paper measured or otherwise."""

import pytest
from made_up_results import Numbers, made_up, run_of

import semistream_lab.experiments.claims  # noqa: F401  registers the judges
from semistream_lab.experiments.judging import CLAIMS, Finding, judge
from semistream_lab.experiments.plan import all_plans


def verdict(number: int, **experiments: Numbers) -> Finding:
    """Judge a claim; experiments have the same numbers with large reads unless they are given."""
    large = {
        f"{name}_reads": numbers
        for name, numbers in experiments.items()
        if f"{name}-reads".replace("_", "-") in all_plans()
    }
    return CLAIMS[number].judge(made_up(ranks="shuffled", **{**large, **experiments}))


def by_exponent(peaks: dict[str, float]) -> Numbers:
    def numbers(series: str, x: float) -> dict[str, object]:
        return run_of(20_000 * (1 - abs(x - peaks[series])))

    return numbers  # type: ignore[return-value]


AS_IN_THE_PAPER = {"e = 0.25": 0.9, "e = 0.5": 0.7, "e = 0.75": 0.5, "e = 1.0": 0.3}
ALL_OLD = dict.fromkeys(AS_IN_THE_PAPER, 1.0)
ALL_YOUNG = dict.fromkeys(AS_IN_THE_PAPER, 0.1)
POSITIONS = [(71, ALL_OLD), (72, ALL_OLD), (73, ALL_YOUNG)]


@pytest.mark.parametrize(("number", "otherwise"), POSITIONS)
def test_look_up_positions_are_judged_by_their_best_place(number: int, otherwise: dict[str, float]) -> None:
    assert verdict(number, pq_2=by_exponent(AS_IN_THE_PAPER)).verdict == "holds"
    assert verdict(number, pq_2=by_exponent(otherwise)).verdict == "fails"


@pytest.mark.parametrize(("number", "otherwise"), POSITIONS)
def test_a_claim_that_larger_reads_turn_round_depends_on_them(number: int, otherwise: dict[str, float]) -> None:
    finding = verdict(number, pq_2=by_exponent(AS_IN_THE_PAPER), pq_2_reads=by_exponent(otherwise))
    assert (finding.verdict, finding.holds) == ("depends", True)
    assert "holds with one page of 8 kB, fails with 13 pages" in finding.depends_on


def test_a_position_that_changes_with_the_table_must_cost_something_to_keep() -> None:
    moving = {"R = 0.5 million": 0.2, "R = 2 million": 0.4, "R = 8 million": 0.8}
    assert verdict(82, pq_2_rows=by_exponent(moving)).holds is True
    assert verdict(82, pq_2_rows=by_exponent(dict.fromkeys(moving, 0.4))).holds is False


def family_rates(
    base: float, early: float, queued: float, *, late: float | None = None, cache: float = 2.0, grow: float = 0.0
) -> Numbers:
    """Return rates by kind of look-up: `late` is that of -L at 90%, by default as at 30%.

    `cache` is what a cache brings, `grow` what the queue gains along the x axis.
    """
    first: dict[str, float] = {}

    def numbers(series: str, x: float) -> dict[str, object]:
        start = first.setdefault("x", x)
        fixed = late if late is not None and "90%" in series else early
        rate = queued * (1 + grow * (x / start - 1)) if "-PQ" in series else fixed if "-L" in series else base
        return run_of(rate * (cache if series.startswith("CACHE") else 1.0))

    return numbers  # type: ignore[return-value]


def with_what_may_decide(number: int, curves: Numbers) -> dict[str, Numbers]:
    """Return the experiments of a claim with those that say what decides it, which decide nothing."""
    own = CLAIMS[number].experiment.replace("-", "_")
    return {own: curves, "pq_threshold": curves, "pq_adapt": curves}


@pytest.mark.parametrize("number", [77, 80, 83, 85])
def test_the_priority_queue_must_be_ahead_of_the_fixed_position(number: int) -> None:
    ahead, behind = family_rates(1e4, 1.2e4, 1.5e4), family_rates(1e4, 1.2e4, 1.1e4)
    assert verdict(number, **with_what_may_decide(number, ahead)).verdict == "holds"
    below = verdict(number, **with_what_may_decide(number, behind))
    assert below.verdict == "fails"
    assert "tuples a read" in below.reason


@pytest.mark.parametrize("number", [77, 80, 83, 85])
def test_a_lead_over_the_published_position_that_a_later_one_ends_depends_on_it(number: int) -> None:
    finding = verdict(number, **with_what_may_decide(number, family_rates(1e4, 1.2e4, 1.5e4, late=1.8e4)))
    assert (finding.verdict, finding.holds) == ("depends", True)
    assert "holds at 30% as published, fails at 90%" in finding.depends_on


def test_a_lead_that_is_undecided_otherwise_is_a_lead_with_a_note() -> None:
    finding = verdict(80, pq_3b=family_rates(1e4, 1.2e4, 1.5e4, late=1.501e4))
    assert finding.verdict == "holds"
    assert "undecided at 90%" in finding.reason


@pytest.mark.parametrize("number", [80, 83, 85])
def test_a_priority_queue_within_the_noise_is_undecided(number: int) -> None:
    own = CLAIMS[number].experiment.replace("-", "_")
    close = verdict(number, **{own: family_rates(1e4, 1.2e4, 1.205e4)})
    assert close.holds is None
    assert "Undecided" in close.reason


def test_cloud_reports_are_unjudged_while_they_are_generated() -> None:
    for queue in (1.5e4, 1.1e4):
        finding = verdict(86, pq_3e=family_rates(1e4, 1.2e4, queue))
        assert finding.holds is None
        assert "generated" in finding.reason


def test_what_the_cache_admits_decides_if_the_best_threshold_turns_it_round() -> None:
    def only_the_cache_fails(series: str, _: float) -> dict[str, object]:
        return run_of({"HYBRIDJOIN-PQ": 1.5e4, "CACHEJOIN-PQ": 1.1e4}.get(series, 1.2e4))

    def queue_ahead(series: str, _: float) -> dict[str, object]:
        return run_of(2e4 if "PQ" in series else 1e4)

    turned = verdict(77, pq_3a=only_the_cache_fails, pq_threshold=queue_ahead)  # type: ignore[arg-type]
    assert (turned.verdict, turned.holds) == ("depends", False)
    assert "2.00 times" in turned.depends_on
    assert verdict(77, pq_3a=only_the_cache_fails, pq_threshold=lambda *_: run_of(1e4)).verdict == "fails"  # type: ignore[arg-type]


def test_a_lead_that_other_rules_of_the_cache_end_depends_on_them() -> None:
    def by_rate_behind(series: str, _: float) -> dict[str, object]:
        return run_of(0.5e4 if "by rate" in series else 2e4 if "PQ" in series else 1e4)

    finding = verdict(77, pq_3a=family_rates(1e4, 1.2e4, 1.5e4), pq_threshold=by_rate_behind)  # type: ignore[arg-type]
    assert (finding.verdict, finding.holds) == ("depends", True)
    assert "fails by rate (0.50 times" in finding.depends_on


def test_a_lead_with_one_threshold_of_a_page_only_depends_on_it() -> None:
    def adapt(series: str, _: float) -> dict[str, object]:
        return run_of(1.1e4 if "twice" in series else 1.5e4)

    finding = verdict(83, pq_3c=family_rates(1e4, 1.2e4, 1.5e4, cache=1.0), pq_adapt=adapt)  # type: ignore[arg-type]
    assert (finding.verdict, finding.holds) == ("depends", True)
    assert "fails with twice of ours" in finding.depends_on


@pytest.mark.parametrize("number", [74, 75])
def test_a_fixed_position_must_be_ahead_of_the_oldest_tuple(number: int) -> None:
    assert verdict(number, pq_3a=family_rates(1e4, 1.2e4, 1e4)).verdict == "holds"
    assert verdict(number, pq_3a=family_rates(1e4, 0.9e4, 1e4)).verdict == "fails"
    assert verdict(number, pq_3a=family_rates(1e4, 0.9e4, 1e4, late=1.2e4)).verdict == "depends"


def test_a_gap_grows_or_does_not() -> None:
    assert verdict(78, pq_3a=family_rates(1e4, 1e4, 1.1e4, grow=0.2)).holds is True
    assert verdict(78, pq_3a=family_rates(1e4, 1e4, 1.5e4, grow=-0.05)).holds is False


def test_the_gain_without_a_cache_is_compared_with_the_gain_with_one() -> None:
    def numbers(series: str, _: float) -> dict[str, object]:
        return run_of(1e4 * (factor[series.split("-")[0]] if "-PQ" in series else 1.0))

    factor = {"HYBRIDJOIN": 1.5, "CACHEJOIN": 1.1}
    assert verdict(79, pq_3a=numbers).holds is True  # type: ignore[arg-type]
    factor = {"HYBRIDJOIN": 1.1, "CACHEJOIN": 1.5}
    assert verdict(79, pq_3a=numbers).holds is False  # type: ignore[arg-type]


def test_falling_more_slowly_is_judged_from_the_smallest_table_to_the_largest() -> None:
    assert verdict(81, pq_3b=family_rates(1e4, 1e4, 1.1e4, grow=0.1)).holds is True
    assert verdict(81, pq_3b=family_rates(1e4, 1e4, 5e4, grow=-0.05)).holds is False


def test_a_gap_at_weak_skew_is_judged_by_factors() -> None:
    assert verdict(84, pq_3c=family_rates(1e4, 1e4, 2e4, grow=-0.1)).holds is True
    assert verdict(84, pq_3c=family_rates(1e4, 1e4, 1.1e4, grow=0.1)).holds is False


def test_gaps_whose_ends_differ_by_less_than_the_noise_are_undecided() -> None:
    assert verdict(84, pq_3c=family_rates(1e4, 1e4, 2e4, grow=-0.002)).holds is None


def test_who_must_be_configured_does_not_adapt() -> None:
    def adapt(loss: float) -> Numbers:
        return lambda series, x: run_of(1e4 * (1.0 if "," in series else 1 - loss * (x == 1.0)))

    base = family_rates(9e3, 9e3, 9e3, cache=1.0)
    assert verdict(91, pq_3c=base, pq_adapt=adapt(0.02)).holds is True
    assert verdict(91, pq_3c=base, pq_adapt=adapt(0.2)).holds is False


def test_a_gliding_frequency_that_the_paper_left_out_is_no_rival() -> None:
    finding = verdict(
        91,
        pq_3c=family_rates(9e3, 9e3, 9e3, cache=1.0),
        pq_adapt=lambda series, _: run_of(2e4 if "gliding" in series else 1e4),
    )
    assert finding.holds is True
    assert "2.00 to 2.00" in finding.reason


def page_reads(**numbers: float) -> Numbers:
    return lambda _series, _x: run_of(1e4, **numbers)


QUEUE_MEMORY = {"memory_disk_buffer": 1e5, "memory_waiting_tuples": 49e6, "longest_queue": 100, "queue_bytes": 1600}
INTERVALS = {"shortest_interval": 1e4, "longest_interval": 1e5, "matches_correlation": 0.99}
INSIDE = [
    (76, {"reads_of_infrequent": 0.8, "reads_of_rare": 0.5}, {"reads_of_infrequent": 0.1, "reads_of_rare": 0.0}),
    (87, {**QUEUE_MEMORY, "memory_page_book-keeping": 4e4}, {**QUEUE_MEMORY, "memory_page_book-keeping": 4e6}),
    (88, {"hot_reads_ratio": 1.1, "hot_tuples_ratio": 6}, {"hot_reads_ratio": 4.0, "hot_tuples_ratio": 6}),
    (
        89,
        {**INTERVALS, "min_matches_per_expected": 0.95, "max_matches_per_expected": 1.02},
        {**INTERVALS, "min_matches_per_expected": 0.5, "max_matches_per_expected": 1.02},
    ),
    (
        90,
        {"queue_entries": 100, "entries_of_rare": 0.01, "entries_of_infrequent": 0.2},
        {"queue_entries": 100, "entries_of_rare": 0.4, "entries_of_infrequent": 0.9},
    ),
]


@pytest.mark.parametrize(("number", "good", "bad"), INSIDE)
def test_what_is_read_is_judged_by_its_limit(number: int, good: dict[str, float], bad: dict[str, float]) -> None:
    assert verdict(number, pq_pages=page_reads(**good)).holds is True
    assert verdict(number, pq_pages=page_reads(**bad)).holds is False


def test_reads_get_less_useful_only_if_they_fall_all_along() -> None:
    assert verdict(92, pq_ssij=lambda _, x: {"matches_per_read": 200 - 15 * x}).holds is True
    assert verdict(92, pq_ssij=lambda *_: {"matches_per_read": 100.0}).holds is False
    assert verdict(92, pq_ssij=lambda _, x: {"matches_per_read": 10 * abs(5 - x) + 10}).holds is False


def test_a_table_that_is_sorted_by_use_is_not_judged() -> None:
    rates = family_rates(1e4, 1.2e4, 1.5e4)
    row = judge(CLAIMS[80], made_up(ranks="shuffled", pq_3b=rates, pq_3b_reads=rates))
    assert (row["verdict"], row["verdict_sorted"], row["verdict_shuffled"]) == ("holds", "unjudged", "holds")
