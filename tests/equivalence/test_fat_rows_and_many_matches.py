"""Rows far above the mean and keys with thousands of rows are joined right, and leave in batches of bounded size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from equivalence_runs import every_algorithm, every_how, parameters_of, standstill_fails, time_limit, weak_hash

from semistream.joining import join
from semistream.master_table import MasterTable
from semistream.store.memory import MemoryStore
from semistream.testing import assert_same_rows, joined_rows, reference_join

MEMORY = 3_000_000
KEYS = 400


def texts(random: np.random.Generator, count: int, *, fat_bytes: int, fat_one_in: int) -> list[str | None]:
    """Return short texts, some of which are fat and some null."""
    lengths = random.integers(0, 40, count)
    lengths[random.random(count) < 1 / fat_one_in] = fat_bytes
    return [None if length == 7 else "t" * int(length) for length in lengths]


def master_of(random: np.random.Generator, *, key: str, nested: bool, many: int, fat_bytes: int = 60_000) -> pa.Table:
    """Return a table some keys of which have several rows, and one of which has `many`."""
    numbers = np.concatenate([np.arange(KEYS), random.integers(0, KEYS, KEYS // 2), np.full(many, KEYS // 3)])
    count = len(numbers)
    columns: dict[str, Any] = {
        "key": _keys(numbers, key),
        "price": pa.array(random.random(count)),
        "name": pa.array(texts(random, count, fat_bytes=fat_bytes, fat_one_in=100), pa.string()),
    }
    if nested:
        columns["tags"] = pa.array([["x" * 20] * int(length) for length in random.integers(0, 6, count)])
    return pa.table(columns)


def stream_of(random: np.random.Generator, *, key: str, nested: bool, rows: int) -> pa.Table:
    """Return a stream whose strings grow, some of which are fat, and whose first row is the fattest."""
    numbers = random.integers(-20, KEYS + 20, rows)
    notes = texts(random, rows, fat_bytes=30_000, fat_one_in=100)
    notes[0] = "f" * 150_000
    for row in range(rows // 2, rows):
        notes[row] = (notes[row] or "") + "g" * (row // 4)
    columns: dict[str, Any] = {"key": _keys(numbers, key), "row": np.arange(rows), "note": notes}
    if nested:
        columns["place"] = pa.array([{"x": float(row), "label": "l" * (row % 50)} for row in range(rows)])
    return pa.table(columns)


def _keys(numbers: np.ndarray, kind: str) -> pa.Array:
    return pa.array(numbers) if kind == "integers" else pa.array([f"key {number}" for number in numbers])


def _shortened(rows: pa.Table) -> pa.Table:
    """Let texts be their lengths, so that a failure can be read."""
    for name in ("note", "name"):
        if name in rows.column_names:
            rows = rows.set_column(rows.column_names.index(name), name, pc.utf8_length(rows[name]))
    return rows


def assert_joined(
    stream: pa.Table,
    master: Any,
    rows: pa.Table,
    *,
    algorithm: str,
    how: str,
    profile: str = "as shipped",
    memory: int = MEMORY,
) -> int:
    """Join, compare with the reference, and return the bytes of the largest batch."""
    with time_limit(120), standstill_fails():
        joined = join(
            stream.to_batches(max_chunksize=97),
            master,
            on="key",
            how=how,
            algorithm=algorithm,
            memory=memory,
            parameters=parameters_of(algorithm, profile),
        )
        batches = list(joined)
    rows_out = pa.Table.from_batches(batches, schema=joined.schema)
    expected = reference_join(_shortened(stream), _shortened(rows), on={"key": "key"}, how=how)
    assert_same_rows(joined_rows(_shortened(rows_out)), expected)
    return max((batch.nbytes for batch in batches), default=0)


@every_how
@every_algorithm
def test_fat_rows_and_repeated_keys_are_joined_as_by_the_reference(algorithm: str, how: str) -> None:
    random = np.random.default_rng([len(algorithm), len(how)])
    rows = master_of(random, key="integers", nested=False, many=300)
    stream = stream_of(random, key="integers", nested=False, rows=700)
    largest = assert_joined(stream, MemoryStore(rows, "key", on_duplicate="all"), rows, algorithm=algorithm, how=how)
    assert largest <= MEMORY // 8 + 150_000 + 60_000


@pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
@pytest.mark.parametrize("key", ["integers", "strings"])
@pytest.mark.parametrize("algorithm", ["demandjoin", "hybridjoin", "ssij", "x-hybridjoin", "op-cachejoin", "inlj"])
def test_pages_of_a_file_are_taken_from_piece_by_piece(tmp_path: Path, algorithm: str, key: str, nested: bool) -> None:
    random = np.random.default_rng([len(algorithm), len(key), nested])
    rows = master_of(random, key=key, nested=nested, many=2_000, fat_bytes=10_000)
    stream = stream_of(random, key=key, nested=nested, rows=500)
    table = MasterTable.build(rows, tmp_path / "t", "key", on_duplicate="all")
    largest = assert_joined(stream, table, rows, algorithm=algorithm, how="left", memory=4 * MEMORY)
    assert largest <= 4 * MEMORY // 8 + 150_000


@every_how
@pytest.mark.parametrize("algorithm", ["demandjoin", "hybridjoin", "ssij", "p-cachejoin"])
def test_keys_that_only_share_a_code_are_told_apart_among_many_rows(algorithm: str, how: str) -> None:
    random = np.random.default_rng([len(algorithm), len(how), 1])
    with weak_hash():
        rows = master_of(random, key="strings", nested=False, many=500, fat_bytes=10_000)
        stream = stream_of(random, key="strings", nested=False, rows=300)
        store = MemoryStore(rows, "key", on_duplicate="all")
        assert_joined(stream, store, rows, algorithm=algorithm, how=how, profile="small parts")


@every_algorithm
def test_one_tuple_with_a_hundred_thousand_matches_leaves_in_pieces(algorithm: str) -> None:
    matches, budget = 100_000, 40_000_000
    rows = pa.table({"key": np.append(np.arange(500), np.full(matches, 250)), "number": np.arange(matches + 500)})
    stream = pa.table({"key": [250, 3, 250], "note": ["n" * 50_000, "short", "m"]})
    store = MemoryStore(rows, "key", on_duplicate="all")
    held = rows_out = 0
    for batch in join(stream, store, on="key", algorithm=algorithm, memory=budget):
        held = max(held, batch.nbytes)
        rows_out += batch.num_rows
    assert rows_out == 2 * (matches + 1) + 1
    assert held <= budget // 8
