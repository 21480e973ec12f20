"""What the best of the family serves in a case: found by the models, measured, and with the rates of all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from semistream_lab.experiments.measuring import best_of_family
from semistream_lab.experiments.measuring.best_of_family import OTHERS
from semistream_lab.experiments.measuring.kinds import run
from semistream_lab.experiments.point import Point

SMALL = Point(
    kind="best-of-family",
    master_rows=20_000,
    memory_bytes=1_000_000,
    ranks="shuffled",
    queues=2.0,
    options=(("max_tuples", 400_000),),
)


@pytest.mark.parametrize("tuned", [False, True])
def test_the_best_is_the_fastest_of_those_that_were_measured(tuned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = ("meshjoin", "hybridjoin", "cachejoin", "inlj")
    monkeypatch.setattr(best_of_family, "OTHERS", chosen)
    row = run(replace(SMALL, tuned=tuned))
    measured = {name.removeprefix("rate_"): rate for name, rate in row.items() if name.startswith("rate_")}
    assert row["service_rate"] == measured[str(row["best"])] == max(measured.values())
    assert len(measured) >= 3
    assert {name for name in row if name.startswith("expected_")} == {f"expected_{name}" for name in chosen}
    alone = replace(SMALL, kind="rate", algorithm="hybridjoin", tuned=tuned)
    assert measured["hybridjoin"] == pytest.approx(float(run(alone)["service_rate"]), rel=1e-9)


def test_who_is_far_behind_by_the_models_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_of_family, "OTHERS", ("inlj", "meshjoin", "hybridjoin", "cachejoin", "sscj"))
    row = run(SMALL)
    assert "rate_inlj" not in row
    assert float(row["expected_inlj"]) < best_of_family.NEAR_BEST * float(row["service_rate"])


def test_ours_is_not_among_the_others_and_all_others_have_a_model() -> None:
    assert "demandjoin" not in OTHERS
    assert {one.algorithm for one in best_of_family._candidates(SMALL) if one.expected_rate > 0} == set(OTHERS)
