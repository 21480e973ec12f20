"""Evidence: what judges of claims are told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_lab import small_plan

import semistream_lab.experiments.claims  # noqa: F401  registers the judges
from semistream_lab.experiments.confidence import confidence_of, half_width, half_width_of_parts
from semistream_lab.experiments.evidence import Evidence, NotMeasuredError
from semistream_lab.experiments.judging import ACCOUNTED, CALIBRATED, CLAIMS, Claim, Finding, judge
from semistream_lab.experiments.measuring import kinds
from semistream_lab.experiments.plan import can_be_priced_again
from semistream_lab.experiments.point import Point, Row
from semistream_lab.experiments.variants import DISCRETE_KEYS, FROM_THE_KEY_ON, MACHINES, SETTINGS, Variant

SEQUENTIAL = ("inlj", "meshjoin", "r-meshjoin", "ssij", "hybridjoin", "x-hybridjoin", "cachejoin", "cachejoin-pq")


@pytest.mark.parametrize("algorithm", SEQUENTIAL)
def test_a_run_that_is_priced_again_is_a_run_with_those_costs(algorithm: str) -> None:
    plan = small_plan("small", ('algorithm = "hybridjoin"', f'algorithm = "{algorithm}"'), ('"1MB", "2MB"', '"1MB"'))
    point = next(one.point for one in plan.points() if one.series == "HYBRIDJOIN")
    assert can_be_priced_again(point)
    nominal = kinds.run(point)
    evidence = Evidence({plan.id: plan}, {point.digest: nominal}.get)
    for variant in MACHINES:
        priced = replace(evidence, variant=variant)
        run = kinds.run(replace(point, factors=variant.factors))
        for metric in ("service_rate", "seconds"):
            assert priced.value(plan.id, "HYBRIDJOIN", 1e6, metric) == pytest.approx(run[metric], rel=1e-9)
        assert run["operations_probes"] == nominal["operations_probes"]


def test_what_overlaps_needs_its_own_runs() -> None:
    assert not can_be_priced_again(Point(algorithm="p-cachejoin"))
    assert not can_be_priced_again(Point(algorithm="demandjoin"))
    assert not can_be_priced_again(Point(algorithm="hybridjoin", arrival_rate=100.0))


def made_up(rates: dict[tuple[str, float, str, int], float]) -> Evidence:
    """Return evidence of some rates, by series, memory, order of ranks and seed."""
    plan = replace(small_plan(), seeds=(0, 1))
    rows: dict[str, Row] = {}
    for one in plan.points():
        key = (one.series, one.x, one.point.ranks, one.point.seed)
        if key in rates:
            rows[one.point.digest] = {"service_rate": rates[key]}
    return Evidence({plan.id: plan}, rows.get)


def test_a_value_is_the_mean_over_seeds_in_one_order_of_ranks() -> None:
    evidence = made_up(
        {
            ("INLJ", 1e6, "sorted", 0): 10.0,
            ("INLJ", 1e6, "sorted", 1): 20.0,
            ("INLJ", 1e6, "shuffled", 0): 1.0,
            ("INLJ", 1e6, "shuffled", 1): 3.0,
        }
    )
    assert evidence.value("small", "INLJ", 1e6) == 15.0
    assert replace(evidence, ranks="shuffled").value("small", "INLJ", 1e6) == 2.0
    assert evidence.xs("small") == [1e6, 2e6]
    assert evidence.series("small") == ["INLJ", "HYBRIDJOIN"]


@pytest.mark.parametrize(
    ("experiment", "series", "x", "says"),
    [
        ("small", "INLJ", 2e6, r"small has not been run \(INLJ at 2, sorted\)"),
        ("small", "OTHER", 1e6, "has no series 'OTHER'"),
        ("large", "INLJ", 1e6, "there is no experiment large"),
    ],
)
def test_what_was_not_measured_is_said(experiment: str, series: str, x: float, says: str) -> None:
    with pytest.raises(NotMeasuredError, match=says):
        made_up({}).value(experiment, series, x)


def claim_that(judge_it: object, ranks: str = "sorted") -> Claim:
    """Return a claim with a judge."""
    return Claim(1, "small", "a claim", "it is so", judge_it, ranks, ranked=True, priced=False)  # type: ignore[arg-type]


def test_a_claim_whose_experiment_was_not_run_is_unjudged_and_says_so() -> None:
    verdict = judge(claim_that(lambda e: Finding(e.value("small", "INLJ", 1e6) > 0, "")), made_up({}))
    assert verdict["verdict"] == "unjudged"
    assert "has not been run" in str(verdict["reason"])


def test_a_judge_that_stumbles_leaves_its_claim_unjudged() -> None:
    verdict = judge(claim_that(lambda _: Finding(1 / 0 > 1, "")), made_up({}))
    assert verdict["verdict"] == "unjudged"
    assert "division by zero" in str(verdict["reason"])


def test_where_the_paper_names_no_order_a_claim_depends_on_it_unless_both_agree() -> None:
    one = claim_that(lambda e: Finding(e.ranks == "sorted", f"in {e.ranks}"), ranks="both")
    verdict = judge(one, made_up({}))
    assert verdict["verdict"] == "depends"
    assert verdict["depends_on"] == "the order of R: sorted holds, shuffled fails"
    assert (verdict["verdict_sorted"], verdict["verdict_shuffled"]) == ("holds", "fails")
    assert verdict["measured"] == "sorted: in sorted; shuffled: in shuffled"
    agreeing = claim_that(lambda e: Finding(True, f"in {e.ranks}"), ranks="both")
    assert judge(agreeing, made_up({}))["verdict"] == "holds"


def test_a_claim_that_a_constant_of_the_machine_turns_round_depends_on_it() -> None:
    turned = claim_that(lambda e: Finding(e.variant.name != "seek doubled", "2.0"))
    verdict = judge(replace(turned, priced=True), made_up({}))
    assert verdict["verdict"] == "depends"
    assert verdict["depends_on"] == "the machine: holds as assumed, fails with seek doubled"
    assert verdict["flips_with"] == "seek doubled"


def test_a_setting_that_its_judge_names_comes_first() -> None:
    one = claim_that(lambda e: Finding(e.variant.name == "seek halved", "", "why", "the size of a read: 2 kB"))
    verdict = judge(replace(one, priced=True), made_up({}))
    assert verdict["verdict"] == "depends"
    assert str(verdict["depends_on"]).startswith("the size of a read: 2 kB; the machine: fails as assumed, holds with")


@pytest.mark.parametrize("holds", [True, False])
def test_what_a_profile_was_calibrated_on_counts_for_neither_side(holds: bool) -> None:
    verdict = judge(replace(claim_that(lambda _: Finding(holds, "1.4")), standing=CALIBRATED), made_up({}))
    assert (verdict["verdict"], verdict["standing"], verdict["measured"]) == ("unjudged", "calibrated", "1.4")
    assert "calibrated" in str(verdict["reason"])


def test_what_the_accounting_makes_true_says_so() -> None:
    verdict = judge(replace(claim_that(lambda _: Finding(True, "93%")), standing=ACCOUNTED), made_up({}))
    assert (verdict["verdict"], verdict["standing"]) == ("holds", "accounted")
    assert "account for memory" in str(verdict["reason"])


def test_the_claims_that_could_not_have_failed_are_marked() -> None:
    standing = {number: one.standing for number, one in CLAIMS.items() if one.standing}
    assert standing == {
        **dict.fromkeys((5, 6, 17), "calibrated"),
        **dict.fromkeys((27, 70, 108), "accounted"),
    }


def test_confidence_is_over_repetitions_or_over_the_parts_of_a_run() -> None:
    rows: list[Row] = [{"service_rate": 9.0, "confidence": 0.5}, {"service_rate": 11.0, "confidence": 0.5}]
    assert confidence_of(rows[:1], "service_rate") == 0.5
    assert confidence_of(rows, "service_rate") == half_width([9.0, 11.0]) == pytest.approx(12.706)
    assert confidence_of(rows[:1], "iterations") is None
    assert half_width([1.0]) is None
    assert half_width_of_parts([1.0]) is None


def test_parts_that_take_turns_are_surer_than_as_many_independent_ones() -> None:
    turns = [1.0, 2.0] * 5
    assert half_width_of_parts(turns) < half_width(turns)  # type: ignore[operator]
    assert half_width_of_parts([3.0] * 10) == 0.0


def varied_verdict(number: int, variant: Variant) -> tuple[str, str, str]:
    """Return a claim's verdict, that of a variant, and what it depends on, if the variant alone turns it round."""
    one = claim_that(lambda e: Finding(e.variant.name != variant.name, f"with {e.variant.name}"))
    verdict = judge(replace(one, number=number), made_up({}))
    case = "from_the_key_on" if variant is FROM_THE_KEY_ON else "discrete_keys"
    return str(verdict["verdict"]), str(verdict[f"verdict_{case}"]), str(verdict["depends_on"])


def test_a_claim_that_hangs_on_where_a_read_begins_depends_on_it() -> None:
    reading = "where a read begins: holds with aligned partitions, fails from the key on"
    assert varied_verdict(1, FROM_THE_KEY_ON) == ("depends", "fails", reading)


def test_the_law_of_the_keys_is_printed_so_another_one_is_only_told() -> None:
    assert varied_verdict(1, DISCRETE_KEYS) == ("holds", "fails", "")


def test_evidence_of_a_variant_is_of_its_own_runs() -> None:
    settings = tuple(variant.name for variant in SETTINGS)
    plan = replace(small_plan(), paper="HYBRIDJOIN", ranks=("sorted",), also_with=settings)
    rows: dict[str, Row] = {one.point.digest: {"service_rate": len(one.variant)} for one in plan.points()}
    evidence = Evidence({plan.id: plan}, rows.get)
    assert evidence.value("small", "HYBRIDJOIN", 1e6) == 0
    for variant in SETTINGS:
        other = replace(evidence, variant=variant)
        assert other.value("small", "HYBRIDJOIN", 1e6) == len(variant.name)
    from_the_key_on = replace(evidence, variant=FROM_THE_KEY_ON)
    assert from_the_key_on.value("small", "INLJ", 1e6) == 0  # it reads one page for one key


def test_experiments_of_papers_draw_keys_as_the_papers_do_and_our_own_by_zipfs_law() -> None:
    paper = replace(small_plan(), paper="HYBRIDJOIN")
    laws = {(one.point.law, one.variant) for one in paper.points() if one.series == "INLJ"}
    assert laws == {("integral", ""), ("discrete", DISCRETE_KEYS.name)}
    assert {one.point.law for one in small_plan().points()} == {"discrete"}
