"""Claims of the last three papers, judged end to end on small runs."""

from dataclasses import replace

import pytest

import semistream_lab.experiments.claims  # noqa: F401  registers the judges
from semistream_lab.experiments.evidence import Evidence
from semistream_lab.experiments.judging import CLAIMS, judge
from semistream_lab.experiments.measuring.kinds import run
from semistream_lab.experiments.plan import Plan, all_plans
from semistream_lab.experiments.point import Row

SCALE = 0.03
EXPERIMENTS = ("optx-waiting", "pq-pages", "pq-pages-reads", "op-4c", "op-6c")


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    plans = {name: shorter(all_plans()[name]) for name in EXPERIMENTS}
    rows: dict[str, Row] = {}
    for plan in plans.values():
        for planned in plan.points(scale=SCALE, variants=False):
            if planned.point.digest not in rows:
                rows[planned.point.digest] = run(planned.point)
    return Evidence(plans, rows.get, scale=SCALE)


def shorter(plan: Plan) -> Plan:
    """Return the experiment with shorter runs, and not at every place."""
    series = tuple(replace(one, settings={**one.settings, "queues": 3.0}) for one in plan.series)
    return replace(plan, series=series, x=replace(plan.x, values=plan.x.values[-1:]), vary=False)


@pytest.mark.parametrize("number", [69, 76, 88])
def test_what_does_not_hang_on_size_comes_out_on_a_small_table(evidence: Evidence, number: int) -> None:
    verdict = judge(CLAIMS[number], evidence)
    assert verdict["verdict"] == "holds", verdict["measured"]
    assert verdict["measured"]


@pytest.mark.parametrize("number", [97, 100, 101, 102, 106, 108])
def test_claims_about_parallel_phases_are_judged_with_numbers(evidence: Evidence, number: int) -> None:
    plans = {**evidence.plans, "op-4b": evidence.plans["op-4c"], "op-6b": evidence.plans["op-6c"]}
    verdict = judge(CLAIMS[number], replace(evidence, plans=plans))
    assert verdict["verdict"] in ("holds", "fails", "depends") or "Undecided" in str(verdict["reason"])
    assert any(sign.isdigit() for sign in str(verdict["measured"]))


def test_a_claim_whose_experiment_was_not_run_is_not_judged(evidence: Evidence) -> None:
    verdict = judge(CLAIMS[61], evidence)
    assert verdict["verdict"] == "unjudged"
    assert "optx-6a" in str(verdict["reason"])


def test_a_claim_that_does_not_say_how_the_table_was_ordered_is_judged_in_both_orders(evidence: Evidence) -> None:
    verdict = judge(CLAIMS[100], evidence)
    assert verdict["ranks"] == "both"
    assert "sorted: " in str(verdict["measured"])
    assert "shuffled: " in str(verdict["measured"])
