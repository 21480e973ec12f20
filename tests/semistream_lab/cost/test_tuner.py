"""Tuning by the model and by measuring."""

from __future__ import annotations

import pytest

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.costs import PAPERS, SSD
from semistream.core.errors import BudgetTooSmallError
from semistream.store.memory import MemoryStore
from semistream_lab.cost import Situation, predict, tune, tune_by_measurement, tuned_parameters
from semistream_lab.cost.tuning_ranges import axes_of

TINY = Situation(40_000, 1_000_000, 1.0)
QUICK = ("meshjoin", "hybridjoin", "x-hybridjoin-tuned", "optimised-x-hybridjoin", "partitioned")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_axes_stay_within_what_recipes_allow(name: str) -> None:
    for situation in (TINY, Situation(8_000_000, 250_000_000, 1.0), Situation(300, 50_000, 0.0)):
        for axis in axes_of(ALGORITHMS[name], situation):
            parameter = ALGORITHMS[name].parameters[axis.parameter]
            assert all(parameter.checked(value) == value for value in axis.values(9))
            middle = axis.values(9)[4]
            assert middle in axis.around(middle, 9, 5)


@pytest.mark.parametrize("name", QUICK)
def test_tuning_is_never_worse_than_the_defaults_and_keeps_its_points(name: str) -> None:
    tuning = tune(name, TINY, PAPERS)
    assert tuning.by == "model"
    assert tuning.service_rate >= predict(name, TINY, PAPERS).service_rate
    assert tuning.service_rate == pytest.approx(predict(name, TINY, PAPERS, tuning.parameters).service_rate)
    assert tuning.service_rate == max(point.service_rate for point in tuning.curve)
    assert dict(tuning.parameters) in [dict(point.parameters) for point in tuning.curve]


@pytest.mark.parametrize("name", ["hybridjoin", "x-hybridjoin-tuned", "optimised-x-hybridjoin"])
def test_the_models_choice_measured_is_within_two_percent_of_the_best_measured(name: str) -> None:
    by_model = tune(name, TINY, PAPERS)
    measured = tune_by_measurement(name, TINY, PAPERS, start=by_model, queues=20)
    assert measured.by == "measurement"
    choice = measured.curve[0]
    assert dict(choice.parameters) == dict(by_model.parameters)
    assert choice.service_rate >= 0.98 * measured.service_rate


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["meshjoin", "r-meshjoin", "hybridjoin", "x-hybridjoin", "x-hybridjoin-tuned", "optimised-x-hybridjoin"]
)
def test_the_models_choice_is_within_two_percent_at_a_tenth_of_the_papers_size(name: str) -> None:
    situation = Situation(200_000, 5_000_000, 1.0)
    measured = tune_by_measurement(name, situation, PAPERS, queues=25)
    assert measured.curve[0].service_rate >= 0.98 * measured.service_rate


def test_what_has_nothing_to_tune_says_so() -> None:
    for name in ("inlj", "oracle"):
        tuning = tune(name, TINY, PAPERS)
        assert tuning.parameters == {}
        assert "nothing to tune" in tuning.note


def test_what_the_model_is_too_rough_for_is_chosen_by_measuring_and_it_is_said() -> None:
    tuning = tune("hybridjoin-pq", TINY, PAPERS)
    assert set(tuning.parameters) == {"read_bytes", "eagerness", "entry"}
    assert "eagerness and entry: they were chosen by short measurements" in tuning.note
    assert len(tuning.along("read_bytes")) > 5


def test_without_refinement_the_defaults_stay_and_it_is_said() -> None:
    tuning = tune("hybridjoin-pq", TINY, PAPERS, refine=False)
    assert set(tuning.parameters) == {"read_bytes"}
    assert "eagerness and entry: measure" in tuning.note


def test_tuned_parameters_can_be_given_to_a_prediction_and_are_remembered() -> None:
    first = tuned_parameters("optimised-x-hybridjoin", TINY, PAPERS)
    first["cache_share"] = 5.0
    again = tuned_parameters("optimised-x-hybridjoin", TINY, PAPERS)
    assert again["cache_share"] < 1
    assert (
        predict("optimised-x-hybridjoin", TINY, PAPERS, again).service_rate
        >= predict("optimised-x-hybridjoin", TINY, PAPERS).service_rate
    )


def test_too_little_memory_for_any_point_is_told() -> None:
    with pytest.raises(BudgetTooSmallError):
        tune("hybridjoin", Situation(200_000, 10_000, 1.0), PAPERS)


def test_measuring_a_store_uses_the_wall_clock() -> None:
    situation = Situation(4_000, 400_000, 1.0, accounting="real")
    store = MemoryStore.of_codes(4_000, row_bytes=120)
    seen: list[tuple[int, int]] = []
    tuning = tune_by_measurement(
        "hybridjoin", situation, SSD, store=store, queues=1, progress=lambda done, total: seen.append((done, total))
    )
    assert tuning.service_rate > 0
    assert len(seen) == len(tuning.curve)
    assert all(done <= total for done, total in seen)


def test_a_curve_along_one_parameter_keeps_the_others_at_their_best() -> None:
    tuning = tune("optimised-x-hybridjoin", TINY, PAPERS)
    curve = tuning.along("read_bytes")
    assert len(curve) > 5
    assert {point.parameters["cache_share"] for point in curve} == {tuning.parameters["cache_share"]}
    values = [point.parameters["read_bytes"] for point in curve]
    assert values == sorted(values)
