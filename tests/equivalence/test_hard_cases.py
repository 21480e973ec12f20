"""Streams and tables that once went wrong, or easily could: each through the public join."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from equivalence_runs import (
    PARALLEL,
    every_algorithm,
    positions_of,
    run_join,
    standstill_fails,
    time_limit,
)

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.joining import join
from semistream.store.counting import CountingStore
from semistream.store.memory import MemoryStore

READ_THE_STORE = [name for name in ALGORITHMS if name not in ("oracle", "optimised-x-hybridjoin")]


def batch(**columns: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


@every_algorithm
def test_rows_that_become_wider_do_not_stop_the_join(algorithm: str) -> None:
    """The first batch says that a row is small; later ones fill the memory of waiting rows long before its slots."""
    store = MemoryStore(pa.table({"id": np.arange(1000), "v": np.arange(1000)}), "id")
    stream = [batch(id=np.arange(64), row=np.arange(64), note=["x"] * 64)]
    for number in range(1, 30):
        rows = np.arange(64) + 64 * number
        stream.append(batch(id=rows * 7 % 1000, row=rows, note=["y" * 3000] * 64))
    with time_limit(20), standstill_fails():
        joined = join(stream, store, on="id", algorithm=algorithm, memory="1MB")
        assert positions_of(joined, "row") == list(range(64 * 30))


@every_algorithm
def test_one_key_over_and_over_is_joined_to_the_end(algorithm: str) -> None:
    store = MemoryStore(pa.table({"id": np.arange(20_000), "v": np.arange(20_000)}), "id", rows_per_page=4)
    stream = [batch(id=np.full(20_000, 7)) for _ in range(5)]
    with time_limit(60), standstill_fails():
        joined = join(stream, store, on="id", algorithm=algorithm, memory="1500KB")
        assert sum(part.num_rows for part in joined) == 100_000


@every_algorithm
def test_large_keys_next_to_each_other_are_found(algorithm: str) -> None:
    for keys in ([2**60, 2**60 + 1], [-(2**63), -(2**63) + 1], [2**63 - 2, 2**63 - 1]):
        store = MemoryStore(pa.table({"id": keys, "v": range(2)}), "id")
        joined = join([batch(id=keys)], store, on="id", algorithm=algorithm, memory="1MB")
        assert sorted(joined.read_all().column("v").to_pylist()) == [0, 1]


@every_algorithm
def test_the_matches_of_one_tuple_may_leave_in_several_batches(algorithm: str) -> None:
    ids = np.repeat(np.arange(11), 4)
    store = MemoryStore(pa.table({"id": ids, "v": np.arange(44)}), "id", rows_per_page=1, on_duplicate="all")
    keys = np.random.default_rng(0).integers(0, 11, 400)
    output, _, _ = run_join(lambda: [batch(id=keys, row=np.arange(400))], store, on="id", algorithm=algorithm)
    assert output is not None
    rows = sorted(zip(output.column("row").to_pylist(), output.column("v").to_pylist(), strict=True))
    assert rows == [(row, int(key) * 4 + number) for row, key in enumerate(keys) for number in range(4)]


@pytest.mark.parametrize(("ours", "matches"), [(pa.uint64(), 1), (pa.int64(), 0)])
def test_unsigned_keys_above_the_signed_ones_are_refused_or_right(ours: pa.DataType, matches: int) -> None:
    """2**64 - 5 as a 64-bit pattern is -5: the two must not meet, and the key must meet itself."""
    master = pa.table({"id": pa.array([2**64 - 5], pa.uint64()), "v": [1]})
    key = 2**64 - 5 if ours == pa.uint64() else -5
    try:
        store = MemoryStore(master, "id")
    except SemistreamError:
        return
    joined = join([batch(id=pa.array([key], ours))], store, on="id", memory="1MB")
    assert sum(part.num_rows for part in joined) == matches


@pytest.mark.parametrize("algorithm", PARALLEL)
def test_nested_columns_survive_two_threads(algorithm: str) -> None:
    """Rows of lists fill their share, so that one thread cleans up while the other takes rows out."""
    store = MemoryStore(pa.table({"id": np.arange(4000), "v": np.arange(4000)}), "id", rows_per_page=10)
    random = np.random.default_rng(4)

    def stream() -> Iterator[pa.RecordBatch]:
        for number in range(150):
            rows = np.arange(100) + 100 * number
            tags = [[f"t{row}"] * int(random.integers(0, 12)) for row in rows]
            yield batch(id=random.integers(0, 4000, 100), row=rows, tags=pa.array(tags, pa.list_(pa.string())))

    with time_limit(60):
        joined = join(stream(), store, on="id", algorithm=algorithm, memory="700KB", parameters={"read_bytes": 400})
        seen = 0
        for part in joined:
            for row, tags in zip(part.column("row").to_pylist(), part.column("tags").to_pylist(), strict=True):
                assert set(tags) <= {f"t{row}"}
                seen += 1
    assert seen == 15_000


@pytest.mark.parametrize("algorithm", ["x-hybridjoin", "x-hybridjoin-tuned", "optimised-x-hybridjoin", "meshjoin"])
def test_a_page_above_the_budget_is_never_read(algorithm: str) -> None:
    """Not even to pin it: the first page holds one key with 20,000 rows."""
    ids = np.concatenate([np.zeros(20_000, dtype=np.int64), np.arange(1, 2000)])
    master = MemoryStore(pa.table({"id": ids, "v": ids}), "id", rows_per_page=50, on_duplicate="all")
    store = CountingStore(master, log=True)
    refused: list[int] = []
    joined = join(
        [batch(id=[5, 0, 9, 1999])],
        store,
        on="id",
        algorithm=algorithm,
        memory="1MB",
        dead_letters=lambda letters, _: refused.extend(letters.column("id").to_pylist()),
    )
    assert sorted(value for part in joined for value in part.column("id").to_pylist()) == [5, 9, 1999]
    assert refused == [0]
    assert store.log is not None
    assert all(first > 0 for first, _ in store.log)


def test_settings_are_checked_at_once_even_for_a_bare_iterator() -> None:
    store = MemoryStore(pa.table({"id": [1], "v": [2]}), "id")
    for wrong in ({"how": "outer"}, {"parameters": {"colour": 1}}, {"memory": "much"}, {"algorithm": "magic"}):
        with pytest.raises(SemistreamError):
            join(iter([]), store, on="id", **wrong)


def test_an_unknown_parameter_is_named() -> None:
    store = MemoryStore(pa.table({"id": [1], "v": [2]}), "id")
    with pytest.raises(InvalidSettingError, match="colour"):
        list(join([batch(id=[1])], store, on="id", parameters={"colour": 1}))


def test_a_join_with_a_deadline_gives_the_same_rows() -> None:
    store = MemoryStore(pa.table({"id": np.arange(5000), "v": np.arange(5000) * 3}), "id")
    stream = [batch(id=np.arange(400) * 7 % 6000, row=np.arange(400) + 400 * number) for number in range(20)]
    joined = join(stream, store, on="id", how="left", memory="2MB", max_wait=0.05).read_all().sort_by("row")
    plain = join(stream, store, on="id", how="left", memory="2MB", algorithm="hybridjoin").read_all().sort_by("row")
    assert joined.equals(plain)
    assert joined.num_rows == 8000
