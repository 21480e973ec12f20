"""Joins with tables of real databases are those of a reference, within their memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from database_rows import Server, execute, opened, rows_by_pages

import semistream as ss
from semistream.algorithms.registry import ALGORITHMS
from semistream.core.errors import (
    RowTooLargeError,
)
from semistream.store.found_rows import FixedValues
from semistream.testing import assert_same_rows, joined_rows, reference_join
from servers.postgresql import PostgresqlServer


def test_rows_far_larger_than_the_sample_are_an_error_that_names_the_option(server: Server) -> None:
    rows = pa.table({"id": range(1000), "t": ["x" * (4000 if 500 <= n < 1000 else 1) for n in range(1000)]})
    server.load("fat", rows, {"id": "bigint", "t": "text"})
    with opened(server, "fat", row_bytes=10) as store, pytest.raises(RowTooLargeError, match=r"row_bytes=\d+"):
        rows_by_pages(store)
    with opened(server, "fat") as store:
        assert rows_by_pages(store) == rows.to_pylist()


def test_a_look_up_keeps_to_its_memory_and_says_how_far_it_came(server: Server) -> None:
    rows = pa.table({"id": range(400), "t": ["x" * 2000] * 400})
    server.load("fat", rows, {"id": "bigint", "t": "text"})
    with opened(server, "fat", row_bytes=10) as store:
        reader = store.row_reader(["t"], 50_000)
        assert reader is not None
        codes, done = np.arange(-3, 410), 0
        looks = 0
        while done < len(codes):
            rest = codes[done:]
            found = reader.look_up(rest, store.locate(rest))
            assert found.code_count >= 1
            assert int(found.bounds[-1]) <= 52
            done += found.code_count
            looks += 1
        assert looks >= 8
        assert reader.read_requests >= looks


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_joins_with_a_table_of_postgresql(postgresql: PostgresqlServer, algorithm: str) -> None:
    random = np.random.default_rng(3)
    master = pa.table(
        {"id": np.arange(0, 4000, 2), "name": [f"product {n}" for n in range(2000)], "n": np.arange(2000)}
    )
    if algorithm == next(iter(ALGORITHMS)):
        postgresql.load("joined", master, {"id": "bigint", "name": "text", "n": "bigint"}, more=", UNIQUE (id)")
    stream = pa.table(
        {"id": 2 * np.minimum(random.zipf(1.3, 3000), 2200) + (random.random(3000) < 0.05), "row": np.arange(3000)}
    )
    joined = ss.join(
        stream, postgresql.address("joined", page_bytes=2048), on="id", how="left", algorithm=algorithm, memory="1MB"
    )
    assert_same_rows(joined_rows(joined.read_all()), reference_join(stream, master, on={"id": "id"}, how="left"))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))])
def test_joins_of_random_tables_are_those_of_the_reference(server: Server, seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 600))

    def some(values: Any, data_type: pa.DataType) -> pa.Array:
        chosen = [None if random.random() < 0.2 else value for value in values]
        integers = (
            [None if value is None else int(value) for value in chosen] if pa.types.is_temporal(data_type) else chosen
        )
        return pa.array(integers, data_type)

    master = pa.table(
        {
            "id": pa.array(random.integers(-300, 300, count), pa.int64()),
            "i": some(random.integers(-(2**31), 2**31, count), pa.int32()),
            "d": some(random.normal(size=count), pa.float64()),
            "t": some(("é" * int(n) for n in random.integers(0, 50, count)), pa.string()),
            "p": some(
                (Decimal(int(n)).scaleb(-2) for n in random.integers(-(10**9), 10**9, count)), pa.decimal128(12, 2)
            ),
            "day": some(random.integers(-100_000, 100_000, count).astype(np.int32), pa.date32()),
            "at": some(random.integers(-(10**15), 10**15, count), pa.timestamp("us")),
        }
    )
    types = {"id": "bigint", "i": "int", "d": "double precision", "t": "text", "p": "decimal(12, 2)", "day": "date"}
    types["at"] = "timestamp" if isinstance(server, PostgresqlServer) else "datetime(6)"
    server.load("random_rows", master, types)
    stream = pa.table({"id": pa.array(random.integers(-350, 350, 2000), pa.int64(), mask=random.random(2000) < 0.1)})
    for how in ("inner", "left", "semi", "anti"):
        joined = ss.join(stream, server.address("random_rows", page_bytes=1000), on="id", how=how, memory="2MB")
        assert_same_rows(joined_rows(joined.read_all()), reference_join(stream, master, on={"id": "id"}, how=how))


def test_rows_between_keys_that_lie_close_together_are_read_by_ranges_and_dropped(server: Server) -> None:
    rows = pa.table({"id": range(0, 20_000, 2), "n": range(10_000)})
    server.load("dense", rows, {"id": "bigint", "n": "bigint"})
    with opened(server, "dense") as store:
        asked: list[int] = []
        ranges = store._database.in_ranges  # type: ignore[attr-defined]

        def in_ranges(*arguments: Any) -> pa.RecordBatch:
            asked.append(len(arguments[2]))
            return ranges(*arguments)

        store._database.in_ranges = in_ranges  # type: ignore[attr-defined]
        for step, is_dense in ((1, True), (3, True), (97, False)):
            asked.clear()
            codes = np.arange(-50, 20_100, step)
            reader = store.row_reader(["n"], 2_000_000)
            assert reader is not None
            found = reader.look_up(codes, store.locate(codes))
            present = (codes % 2 == 0) & (codes >= 0) & (codes < 20_000)
            assert found.code_count == len(codes)
            assert np.diff(found.bounds).tolist() == present.astype(int).tolist()
            numbers = found.columns[0]
            assert isinstance(numbers, FixedValues)
            assert numbers.values.view(np.int64).tolist() == (codes[present] // 2).tolist()
            assert bool(asked) is is_dense


@pytest.mark.parametrize("key", ["id", "name"])
def test_a_join_forgets_what_it_has_cached_after_the_time_that_the_address_says(server: Server, key: str) -> None:
    rows = pa.table({"id": range(1, 201), "name": [f"name {n}" for n in range(200)], "n": range(1, 201)})
    server.load("changing", rows, {"id": "bigint", "name": "varchar(9)", "n": "bigint"}, key)
    asked = pa.record_batch({key: rows.slice(0, 2).column(key).combine_chunks()})
    seen: list[int] = []
    has_answered = threading.Semaphore(0)

    def batches() -> Iterator[pa.RecordBatch]:
        yield asked
        assert has_answered.acquire(timeout=20)
        execute(server, "UPDATE changing SET n = n + 10")
        yield asked
        assert has_answered.acquire(timeout=20)
        time.sleep(2.1)
        yield asked

    joined = ss.join(batches(), server.address("changing", key, cache_for=2), on=key, columns=["n"])
    for batch in joined:
        seen += batch.column("n").to_pylist()
        has_answered.release()
    assert [sorted(seen[start : start + 2]) for start in (0, 2, 4)] == [[1, 2], [1, 2], [11, 12]]
    assert (joined.stats.tuples_in, joined.stats.tuples_out) == (6, 6)
