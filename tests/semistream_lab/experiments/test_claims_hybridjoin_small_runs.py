"""Claims of the HYBRIDJOIN and X-HYBRIDJOIN papers, judged end to end on small runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

import semistream_lab.experiments.claims  # noqa: F401  registers the judges
from semistream_lab.experiments.evidence import Evidence
from semistream_lab.experiments.judging import CLAIMS, judge
from semistream_lab.experiments.measuring.kinds import run
from semistream_lab.experiments.plan import Plan, all_plans
from semistream_lab.experiments.point import Row

SCALE = 0.03
EXPERIMENTS = {
    "hybrid-theorems": 1,
    "hybrid-silence": 1,
    "hybrid-7a": 1,
    "hybrid-7a-rates": 1,
    "hybrid-7d": 2,
    "hybrid-10b": 16,
    "x-3a": 2,
    "x-3d": 2,
}
"""Which experiments are run, and at how many places."""


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    plans = {name: shorter(all_plans()[name], places) for name, places in EXPERIMENTS.items()}
    rows: dict[str, Row] = {}
    for plan in plans.values():
        for planned in plan.points(scale=SCALE, variants=False):
            if planned.point.digest not in rows:
                rows[planned.point.digest] = run(planned.point)
    return Evidence(plans, rows.get, scale=SCALE)


def shorter(plan: Plan, places: int) -> Plan:
    """Return the experiment with shorter runs, and not at every place."""
    seconds = {"option.warm_up": 20, "option.seconds": 20} if plan.id == "hybrid-7a-rates" else {}
    series = tuple(replace(one, settings={**one.settings, "queues": 3.0, **seconds}) for one in plan.series)
    return replace(plan, series=series, x=replace(plan.x, values=plan.x.values[:places]), vary=False)


@pytest.mark.parametrize("number", [2, 3, 4, 10, 15, 25, 26, 27, 30, 32, 36, 48])
def test_what_does_not_hang_on_size_comes_out_on_a_small_table(evidence: Evidence, number: int) -> None:
    verdict = judge(CLAIMS[number], evidence)
    assert verdict["verdict"] == "holds", (verdict["measured"], verdict["reason"])
    assert any(sign.isdigit() for sign in str(verdict["measured"]))


@pytest.mark.parametrize("number", [5, 6])
def test_what_the_profile_was_calibrated_on_is_measured_and_not_judged(evidence: Evidence, number: int) -> None:
    verdict = judge(CLAIMS[number], evidence)
    assert (verdict["verdict"], verdict["verdict_sorted"]) == ("unjudged", "holds")
    assert any(sign.isdigit() for sign in str(verdict["measured"]))


@pytest.mark.parametrize("number", [32, 36])
def test_what_hangs_on_the_order_of_the_table_does_not_hold_without_it(evidence: Evidence, number: int) -> None:
    verdict = judge(CLAIMS[number], evidence)
    assert verdict["verdict_sorted"] == "holds"
    assert verdict["verdict_shuffled"] in ("fails", "unjudged")  # short runs have wide intervals


def test_what_hangs_on_the_arrival_rate_is_judged_at_each_with_its_cause(evidence: Evidence) -> None:
    verdict = judge(CLAIMS[14], evidence)
    assert verdict["verdict"] in ("depends", "fails")
    assert all(rate in str(verdict["measured"]) for rate in ("125/s", "500/s", "2,000/s"))
    assert "Little" in str(verdict["reason"])
    assert "In a full queue the factor is" in str(verdict["reason"])


def test_theorems_do_not_hang_on_costs_and_bounds_do(evidence: Evidence) -> None:
    assert judge(CLAIMS[3], evidence)["depends_on_costs"] is False
    assert judge(CLAIMS[5], evidence)["depends_on_costs"] is True


def test_a_claim_whose_experiment_was_not_run_is_not_judged(evidence: Evidence) -> None:
    verdict = judge(CLAIMS[37], evidence)
    assert verdict["verdict"] == "unjudged"
    assert "x-3b" in str(verdict["reason"])
