"""Whoever is told that memory is too small, and gives as much as is advised, can join; and it is not asked for much."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equivalence_runs import every_algorithm

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.budget import parse_bytes
from semistream.core.errors import BudgetTooSmallError, RowTooLargeError
from semistream.joining import join
from semistream.master_table import MasterTable
from semistream.store.contract import MasterStore

ROWS = 20_000
SCHEMAS = ("narrow", "strings", "nested", "wide")


def columns_of(kind: str, count: int) -> dict[str, Any]:
    numbers = np.arange(count)
    if kind == "strings":
        return {"text": ["t" * (number % 60) for number in range(count)]}
    if kind == "nested":
        return {"tags": [["t"] * (number % 5) for number in range(count)], "text": ["t" * 20] * count}
    if kind == "wide":
        return {f"number {index}": numbers for index in range(60)}
    return {"value": numbers}


@pytest.fixture(scope="module", params=SCHEMAS)
def kind_and_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, MasterStore]:
    rows = pa.table({"id": np.arange(ROWS), **columns_of(request.param, ROWS)})
    path = tmp_path_factory.mktemp("tables") / "t"
    return request.param, MasterTable.build(rows, path, "id").open()


def is_enough(memory: int, kind: str, store: MasterStore, algorithm: str) -> BudgetTooSmallError | None:
    columns = {f"our {name}": values for name, values in columns_of(kind, 30).items()}
    stream = pa.table({"id": np.arange(30) * 600, **columns})
    try:
        assert join(stream, store, on="id", algorithm=algorithm, memory=memory).read_all().num_rows == 30
    except BudgetTooSmallError as error:
        return error
    return None


def advised_bytes(error: BudgetTooSmallError) -> int:
    match = re.search(r"give at least about ([0-9.]+ \w+)\.$", str(error))
    assert match, str(error)
    return parse_bytes(match[1])


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name != "oracle"])
def test_what_is_advised_is_enough_and_little_more_than_needed(
    kind_and_store: tuple[str, MasterStore], algorithm: str
) -> None:
    kind, store = kind_and_store
    for memory in (1_000, 30_000, 100_000, 300_000):
        error = is_enough(memory, kind, store, algorithm)
        if error is None:
            continue
        advised = advised_bytes(error)
        assert is_enough(advised, kind, store, algorithm) is None, f"{memory} bytes: {error}"
        less = advised // 1.25
        assert less < memory or is_enough(int(less), kind, store, algorithm), f"{memory} bytes: {error}"


@every_algorithm
def test_a_large_row_that_comes_first_does_not_stop_the_join(algorithm: str, tmp_path: Path) -> None:
    rows = pa.table({"id": np.arange(5_000), "value": np.arange(5_000)})
    store = MasterTable.build(rows, tmp_path / "t", "id").open()
    notes = ["n" * 300_000, *["short"] * 3_000]
    stream = pa.table({"id": np.arange(3_001), "note": notes})
    for batches in (stream.to_batches(max_chunksize=1), stream.to_batches()):
        joined = join(batches, store, on="id", algorithm=algorithm, memory="4MB")
        assert sum(batch.num_rows for batch in joined) == 3_001


@every_algorithm
def test_following_the_advice_of_a_row_that_is_too_large_is_enough(algorithm: str, tmp_path: Path) -> None:
    names = ["x" * 400_000 if number == 7 else "short" for number in range(2_000)]
    table = MasterTable.build(pa.table({"id": np.arange(2_000), "name": names}), tmp_path / "t", "id")
    stream = pa.table({"id": [3, 7, 8], "note": ["n" * 700_000, "short", "short"]})
    memory = 2_000_000
    for _ in range(2):
        with pytest.raises(RowTooLargeError) as raised:
            list(join(stream, table, on="id", algorithm=algorithm, memory=memory))
        match = re.search(r"give at least ([0-9.]+ \w+)\.$", str(raised.value))
        assert match, str(raised.value)
        memory = parse_bytes(match[1])
        if "stream row" in str(raised.value):
            break
    rows = sum(batch.num_rows for batch in join(stream, table, on="id", algorithm=algorithm, memory=memory))
    assert rows == 3
