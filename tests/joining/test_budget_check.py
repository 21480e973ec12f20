"""The check of a budget before a join runs."""

from __future__ import annotations

import pyarrow as pa
import pytest

from semistream.algorithms.registry import algorithm_named
from semistream.core.budget import MemoryBudget
from semistream.core.errors import BudgetTooSmallError
from semistream.engine.output.output_plan import OutputPlan, plan_output
from semistream.joining import ordered_session, session
from semistream.joining.budget_check import check_budget
from semistream.store.memory import MemoryStore

STREAM = pa.schema([("id", pa.int64()), ("note", pa.string())])
RECIPE = algorithm_named("demandjoin")


@pytest.fixture
def store() -> MemoryStore:
    rows = pa.table({"id": pa.array(range(20_000)), "name": pa.array([f"name {n}" for n in range(20_000)])})
    return MemoryStore(rows, "id", rows_per_page=1)


@pytest.fixture
def plan(store: MemoryStore) -> OutputPlan:
    return plan_output(STREAM, store.schema, [("id", "id")], how="inner")


@pytest.mark.parametrize("in_order", [True, False])
def test_a_check_builds_nothing_and_leaves_the_memory_of_the_process_as_it_is(
    store: MemoryStore, plan: OutputPlan, in_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a check must not do this")

    for module in (session, ordered_session):
        monkeypatch.setattr(module, "return_freed_memory", refuse)
    monkeypatch.setattr(session.JoinSession, "__init__", refuse)
    monkeypatch.setattr(ordered_session.OrderedSession, "__init__", refuse)
    monkeypatch.setattr("semistream.engine.rows.slot_rows.SlotRows.__init__", refuse)
    pool = pa.default_memory_pool().backend_name
    check_budget(8_000_000, store, plan, STREAM, recipe=RECIPE, in_order=in_order)
    assert pa.default_memory_pool().backend_name == pool


@pytest.mark.parametrize("in_order", [True, False])
def test_a_check_refuses_what_a_session_refuses(store: MemoryStore, plan: OutputPlan, in_order: bool) -> None:
    with pytest.raises(BudgetTooSmallError) as checked:
        check_budget(300_000, store, plan, STREAM, recipe=RECIPE, in_order=in_order)
    with pytest.raises(BudgetTooSmallError) as built:
        build(store, plan, in_order)
    assert str(checked.value) == str(built.value)


def build(store: MemoryStore, plan: OutputPlan, in_order: bool) -> None:
    budget = MemoryBudget(300_000)
    if in_order:
        ordered_session.OrderedSession(store, plan, STREAM, recipe=RECIPE, budget=budget)
    else:
        session.JoinSession(store, plan, STREAM, recipe=RECIPE, budget=budget, stream_row_bytes=24)
