"""The hit rates that are predicted from a sample, compared with those of runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from semistream.algorithms.registry import DEFAULT_ALGORITHM, algorithm_named
from semistream.core.budget import MemoryBudget
from semistream.core.errors import SemistreamError
from semistream.engine.output.output_plan import plan_output
from semistream.generator import ZipfKeys
from semistream.joining.advice import Advice, advise
from semistream.joining.ordered_session import OrderedSession
from semistream.store import tables

_ROWS = 200_000
_BATCH_ROWS = 50_000
_STREAM = pa.schema([("id", pa.int64()), ("quantity", pa.int64())])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a master table of every second number."""
    path = tmp_path_factory.mktemp("advice") / "products"
    numbers = np.arange(1, _ROWS + 1, dtype=np.int64)
    payload = pa.array(["x" * 40]).take(pa.array(np.zeros(_ROWS, dtype=np.int64)))
    tables.build(pa.table({"id": numbers, "name": payload, "price": numbers * 1.5}), path, "id")
    return path


def _hit_rates(table: Path, keys: Iterator[np.ndarray], memory: int) -> list[float]:
    """Return the hit rate of each batch of a run as a task of Spark does it."""
    with tables.table_at(table).open() as store:
        plan = plan_output(_STREAM, store.schema, [("id", "id")], how="left")
        recipe = algorithm_named(DEFAULT_ALGORITHM)
        session = OrderedSession(store, plan, _STREAM, recipe=recipe, budget=MemoryBudget(memory))
        rates = []
        for drawn in keys:
            before = session.stats.cache_hits
            batch = pa.RecordBatch.from_arrays([pa.array(drawn), pa.array(drawn)], schema=_STREAM)
            assert sum(rows.num_rows for rows in session.run([batch])) == len(drawn)
            rates.append((session.stats.cache_hits - before) / len(drawn))
        return rates


def _advice(table: Path, sample: np.ndarray, memories: list[int], rows: int) -> list[Advice]:
    return advise(pa.table({"id": sample}), table, on="id", memory=memories, rows=rows)


@pytest.mark.parametrize(("exponent", "known"), [(0.5, 1.0), (1.0, 1.0), (1.0, 0.7), (1.25, 1.0)])
def test_a_run_has_the_hit_rate_that_was_predicted(table: Path, exponent: float, known: float) -> None:
    stream = ZipfKeys(int(_ROWS / known), exponent, seed=2, ranks="shuffled")
    memories = [2_000_000, 8_000_000]
    advice = _advice(table, stream.draw(30_000), memories, rows=500_000)
    for predicted, memory in zip(advice, memories, strict=True):
        rates = _hit_rates(table, (stream.draw(_BATCH_ROWS) for _ in range(24)), memory)
        assert predicted.first_hit_rate == pytest.approx(np.mean(rates[:10]), abs=0.03)
        assert predicted.hit_rate == pytest.approx(np.mean(rates[-6:]), abs=0.03)


def test_more_memory_never_answers_less(table: Path) -> None:
    sample = ZipfKeys(_ROWS, 1.0, seed=2, ranks="shuffled").draw(20_000)
    few, more, all_of_it = _advice(table, sample, [2_000_000, 6_000_000, 64_000_000], rows=500_000)
    assert few.hit_rate < more.hit_rate < all_of_it.hit_rate
    assert few.cached_rows < more.cached_rows < all_of_it.cached_rows <= _ROWS
    assert all(each.warm_rows >= 8 * each.cached_rows for each in (few, more, all_of_it))


def test_rows_without_a_key_are_never_answered(table: Path) -> None:
    keys = [None if row % 2 else 1 + row % 50 for row in range(4_000)]
    (advice,) = advise(pa.table({"id": pa.array(keys, pa.int64())}), table, on="id", memory=["2MB"])
    assert advice.hit_rate == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("sample", "says"),
    [
        (pa.table({"id": np.arange(10)}), "at least 1,000"),
        (pa.table({"other": np.arange(2_000)}), "no column id"),
        (pa.table({"id": pa.array(["x"] * 2_000)}), "id"),
        (pa.table({"id": pa.nulls(2_000, pa.int64())}), "check `on`"),
    ],
)
def test_a_sample_that_says_nothing_is_refused_in_a_sentence(table: Path, sample: pa.Table, says: str) -> None:
    with pytest.raises(SemistreamError, match=says):
        advise(sample, table, on="id")
