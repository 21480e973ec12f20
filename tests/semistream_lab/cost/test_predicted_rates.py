"""Predicted service rates, against measurements on the model clock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.costs import PAPERS, REMOTE, SSD
from semistream.core.errors import BudgetTooSmallError, InvalidSettingError, UnknownAlgorithmError
from semistream.generator import Workload, ZipfKeys
from semistream.store.memory import MemoryStore
from semistream_lab.cost import Situation, predict, printed_prediction
from semistream_lab.cost.division import divide
from semistream_lab.measurement import measure

SMALL = (200_000, 5_000_000)
PAPER_SIZE = (2_000_000, 50_000_000)
PUBLISHED = {
    "inlj": 0.005,
    "meshjoin": 0.03,
    "r-meshjoin": 0.03,
    "hybridjoin": 0.05,
    "x-hybridjoin": 0.02,
    "x-hybridjoin-tuned": 0.02,
    "optimised-x-hybridjoin": 0.02,
    "cachejoin": 0.04,
    "p-cachejoin": 0.04,
    "op-cachejoin": 0.05,
}
"""How near the model comes to a run of some queues, by algorithm."""
AT_PAPER_SIZE = {**dict.fromkeys(PUBLISHED, 0.02), "p-cachejoin": 0.03}
"""The same in the papers' situation; one seed of P-CACHEJOIN is 1.5 to 3% from the model at 50 MB, their mean 1.8%."""
DERIVED = {
    "hybridjoin-l": 0.03,
    "hybridjoin-pq": 0.05,
    "sscj": 0.05,
    "cachejoin-l": 0.08,
    "partitioned": 0.04,
    "ssij": 0.06,
    "oracle": 0.001,
}
UNCACHED = ("hybridjoin", "x-hybridjoin", "x-hybridjoin-tuned", "optimised-x-hybridjoin", "hybridjoin-l")


def measured(name: str, situation: Situation, *, queues: float, seed: int = 0) -> float:
    """Return the measured service rate of an algorithm."""
    store = MemoryStore.of_codes(situation.master_rows, row_bytes=situation.row_bytes, page_bytes=situation.page_bytes)
    keys = ZipfKeys(situation.master_rows, situation.exponent, seed=seed, ranks=situation.ranks)  # type: ignore[arg-type]
    result = measure(
        ALGORITHMS[name],
        store,
        Workload(keys),
        memory=situation.memory_bytes,
        tuples=50_000,
        queues=queues,
        profile=PAPERS,
        accounting=situation.accounting,
        seed=seed,
    )
    return result.service_rate


@pytest.mark.parametrize(("name", "margin"), [*PUBLISHED.items(), *DERIVED.items()])
def test_the_model_meets_the_measurement_at_exponent_one_on_a_sorted_table(name: str, margin: float) -> None:
    situation = Situation(*SMALL, 1.0)
    queues = 16 if "mesh" in name else 40
    rate = measured(name, situation, queues=queues)
    assert predict(name, situation, PAPERS, queues=queues).service_rate == pytest.approx(rate, rel=margin)


@pytest.mark.parametrize("ranks", ["sorted", "shuffled"])
@pytest.mark.parametrize("exponent", [0.0, 0.5])
@pytest.mark.parametrize("name", UNCACHED)
def test_the_model_holds_for_weaker_skew_and_shuffled_tables(name: str, exponent: float, ranks: str) -> None:
    situation = Situation(*SMALL, exponent, ranks)
    assert predict(name, situation, PAPERS).service_rate == pytest.approx(
        measured(name, situation, queues=20), rel=0.03
    )


@pytest.mark.slow
@pytest.mark.parametrize("memory_mb", [50, 100, 150, 200, 250])
@pytest.mark.parametrize(("name", "margin"), AT_PAPER_SIZE.items())
def test_the_model_meets_the_measurement_in_the_papers_situation(name: str, margin: float, memory_mb: int) -> None:
    situation = Situation(2_000_000, memory_mb * 1_000_000, 1.0)
    queues = 40 if "cachejoin" in name else 80
    rate = measured(name, situation, queues=queues)
    assert predict(name, situation, PAPERS, queues=queues).service_rate == pytest.approx(rate, rel=margin)


@pytest.mark.parametrize("costs", [PAPERS, SSD, REMOTE])
@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("accounting", ["papers", "real"])
def test_every_algorithm_has_a_model_for_every_machine(name: str, costs: object, accounting: str) -> None:
    situation = Situation(*SMALL, 0.8, "shuffled", accounting=accounting)
    prediction = predict(name, situation, costs)  # type: ignore[arg-type]
    assert prediction.service_rate == pytest.approx(prediction.tuples_per_iteration / prediction.seconds_per_iteration)
    assert 0 < prediction.service_rate < float("inf")
    assert 0 <= prediction.cached_share <= 1
    assert prediction.formula == "corrected"
    assert sum(prediction.memory.values()) <= max(situation.memory_bytes, 1)


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name not in ("inlj", "oracle")])
def test_more_memory_never_serves_fewer_tuples(name: str) -> None:
    rates = [
        predict(name, Situation(200_000, memory, 1.0), PAPERS).service_rate
        for memory in (2_000_000, 4_000_000, 8_000_000, 16_000_000)
    ]
    assert rates == pytest.approx(sorted(rates), rel=0.03)


def test_the_sizes_are_the_engines_own() -> None:
    situation = Situation(*PAPER_SIZE, 1.0)
    division = divide(ALGORITHMS["hybridjoin"], situation, PAPERS)
    assert division.waiting_slots == 290_080
    assert division.page_group_count == 2_263
    assert predict("hybridjoin", situation, PAPERS).waiting_slots == 290_080


def test_a_learning_cache_answers_more_in_its_steady_state_if_it_fills_late() -> None:
    situation = Situation(200_000, 25_000_000, 1.0)
    soon = predict("cachejoin", situation, PAPERS)
    at_last = predict("cachejoin", situation, PAPERS, queues=float("inf"))
    assert soon.cached_share < at_last.cached_share < 1


def test_printed_formulas_are_given_where_papers_print_them() -> None:
    situation = Situation(*PAPER_SIZE, 1.0)
    printed = {name for name in ALGORITHMS if printed_prediction(name, situation, PAPERS) is not None}
    assert printed == {
        *("hybridjoin", "x-hybridjoin", "x-hybridjoin-tuned", "optimised-x-hybridjoin"),
        *("cachejoin", "p-cachejoin", "op-cachejoin"),
    }


def test_the_printed_formula_of_hybridjoin_is_its_equation_two() -> None:
    prediction = printed_prediction("hybridjoin", Situation(*PAPER_SIZE, 1.0), PAPERS)
    assert prediction is not None
    assert prediction.formula == "printed"
    assert prediction.tuples_per_iteration == pytest.approx(1.36 * 290_080 * 884 / 2_000_000)
    assert prediction.seconds_per_iteration == pytest.approx(
        0.0055 + 884 * 120 / 10e6 + 884e-6 + prediction.tuples_per_iteration * 4e-6
    )


def test_the_printed_formula_of_optimised_x_hybridjoin_takes_its_tuples_from_the_run() -> None:
    situation, tuples = Situation(*PAPER_SIZE, 1.0), 900.0
    prediction = printed_prediction("optimised-x-hybridjoin", situation, PAPERS, observed_tuples=tuples)
    assert prediction is not None
    rows, size, slots = 884, 2_000_000, prediction.waiting_slots
    cached = round(prediction.memory["cache"] / 120)
    sizes = (size, cached, rows)

    def hits(total: float, held: float, _: float) -> float:
        return math.log(held) / math.log(total)

    def matches(total: float, held: float, read: float) -> float:
        return (math.log(total) - math.log(held + 1)) * read / (total - held) / (math.log(total) + 0.5772156649)

    def law(of: Callable[[float, float, float], float]) -> float:
        """Fit a power law without a constant factor by doubling each size."""
        product = 1.0
        for place, value in enumerate(sizes):
            doubled = [2 * other if index == place else other for index, other in enumerate(sizes)]
            product *= value ** math.log2(of(*doubled) / of(*sizes))
        return product

    from_cache, from_disk = law(hits) * tuples, law(matches) * slots
    assert prediction.tuples_per_iteration == pytest.approx(from_cache + from_disk, rel=1e-3)
    assert prediction.cached_share == pytest.approx(0.99, abs=0.02)  # Eq. 4 gives 0.73
    alone = printed_prediction("optimised-x-hybridjoin", situation, PAPERS)
    assert alone is not None
    assert alone.cached_share == pytest.approx(hits(*sizes), abs=1e-3)


def test_no_law_is_fitted_where_twice_the_cache_is_the_table() -> None:
    half = Situation(60_000, 8_000_000, 1.0)
    knobs = {"cache_share": 0.5}
    assert printed_prediction("optimised-x-hybridjoin", half, PAPERS, knobs) is not None
    assert printed_prediction("optimised-x-hybridjoin", half, PAPERS, knobs, observed_tuples=900.0) is None


def test_a_prediction_is_quick_once_the_situation_is_known() -> None:
    situation = Situation(*PAPER_SIZE, 1.0)
    names = ("hybridjoin", "x-hybridjoin-tuned", "optimised-x-hybridjoin", "cachejoin")
    for name in names:
        predict(name, situation, PAPERS)
    began = time.process_time()
    for name in names:
        predict(name, situation, PAPERS, {"read_bytes": 300_000})
    assert time.process_time() - began < 1.0 * len(names)


def test_what_cannot_be_predicted_says_what_to_do() -> None:
    with pytest.raises(UnknownAlgorithmError):
        predict("nojoin", Situation(*SMALL, 1.0), PAPERS)
    with pytest.raises(BudgetTooSmallError):
        predict("hybridjoin", Situation(200_000, 10_000, 1.0), PAPERS)
    with pytest.raises(InvalidSettingError):
        predict("hybridjoin", Situation(*SMALL, 1.0), PAPERS, {"cache_share": 0.1})


@pytest.mark.parametrize(
    "wrong",
    [{"exponent": -1.0}, {"ranks": "mixed"}, {"master_rows": 0}, {"accounting": "ours"}, {"exponent": float("nan")}],
)
def test_a_situation_refuses_what_makes_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidSettingError):
        Situation(**{"master_rows": 1_000, "memory_bytes": 1_000_000, "exponent": 1.0, **wrong})  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=st.integers(1, 6_000),
    memory=st.integers(60_000, 4_000_000),
    exponent=st.sampled_from([0.0, 0.7, 1.0, 2.0]),
    ranks=st.sampled_from(["sorted", "shuffled"]),
    name=st.sampled_from(sorted(ALGORITHMS)),
)
def test_small_tables_are_predicted_too(rows: int, memory: int, exponent: float, ranks: str, name: str) -> None:
    situation = Situation(rows, memory, exponent, ranks)
    try:
        prediction = predict(name, situation, PAPERS)
    except BudgetTooSmallError:
        return
    assert 0 < prediction.service_rate < 1e9
    assert 0 <= prediction.cached_share <= 1
    printed = printed_prediction(name, situation, PAPERS)
    assert printed is None or 0 < printed.service_rate < 1e9
