"""Bad keys, wide rows, absent keys and drifting schemas: what happens to each."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import semistream as ss
from semistream.algorithms.registry import ALGORITHMS
from semistream.core.errors import (
    BudgetTooSmallError,
    DuplicateKeyError,
    InvalidSettingError,
    KeyTypeError,
    NameClashError,
    NullKeyError,
    RowTooLargeError,
    SchemaDriftError,
    UnknownAlgorithmError,
    UnknownColumnError,
)
from semistream.store.counting import CountingStore
from semistream.store.memory import MemoryStore

EVERY_ALGORITHM = pytest.mark.parametrize("algorithm", list(ALGORITHMS))


def products(count: int = 100) -> pa.Table:
    ids = np.arange(count, dtype=np.int64)
    return pa.table({"id": ids, "name": [f"product {i}" for i in ids]})


def stream_of(keys: list[object], data_type: pa.DataType) -> pa.Table:
    return pa.table({"id": pa.array(keys, data_type), "row": pa.array(range(len(keys)), pa.int64())})


def joined_rows(stream: pa.Table, master: MemoryStore, **options: object) -> list[dict[str, object]]:
    options.setdefault("memory", "2MB")
    table = ss.join(stream, master, on="id", **options).read_all()  # type: ignore[arg-type]
    return sorted(table.to_pylist(), key=lambda row: row["row"])


@EVERY_ALGORITHM
def test_a_null_stream_key_never_matches_and_is_counted(algorithm: str) -> None:
    master = MemoryStore(products(), "id")
    stream = stream_of([1, None, 2, None], pa.int64())
    inner = ss.join(stream, master, on="id", algorithm=algorithm, memory="2MB")
    assert sorted(inner.read_all()["row"].to_pylist()) == [0, 2]
    assert inner.stats.null_keys == 2
    left = joined_rows(stream, master, how="left", algorithm=algorithm)
    assert [row["name"] for row in left] == ["product 1", None, "product 2", None]
    assert [row["row"] for row in joined_rows(stream, master, how="anti", algorithm=algorithm)] == [1, 3]


def test_a_null_in_one_column_of_a_composite_key_never_matches() -> None:
    master = MemoryStore(pa.table({"id": [1, 2], "region": ["eu", "us"], "name": ["a", "b"]}), ["id", "region"])
    stream = pa.table({"id": [1, 1, None], "region": ["eu", None, "us"], "row": [0, 1, 2]})
    joined = ss.join(stream, master, on=["id", "region"], how="left", memory="2MB").read_all()
    assert dict(zip(joined["row"].to_pylist(), joined["name"].to_pylist(), strict=True)) == {0: "a", 1: None, 2: None}


def test_null_master_keys_are_refused_with_their_count() -> None:
    with pytest.raises(NullKeyError, match="2 master rows have a null key"):
        MemoryStore(pa.table({"id": [1, None, None]}), "id")


def test_duplicate_master_keys_are_refused_with_one_of_them() -> None:
    with pytest.raises(DuplicateKeyError, match="id=7"):
        MemoryStore(pa.table({"id": [7, 3, 7]}), "id")


@EVERY_ALGORITHM
def test_duplicate_master_keys_match_with_every_row_where_that_is_wanted(algorithm: str) -> None:
    rows = pa.table({"id": [7, 3, 7, 7], "name": ["a", "b", "c", "d"]})
    master = MemoryStore(rows, "id", rows_per_page=1, on_duplicate="all")
    stream = stream_of([7, 3, 9] * 20, pa.int64())
    got = [(row["row"], row["name"]) for row in joined_rows(stream, master, algorithm=algorithm)]
    wanted = [(i, name) for i, key in enumerate([7, 3, 9] * 20) for name in {7: "acd", 3: "b", 9: ""}[key]]
    assert sorted(got) == wanted
    semi = joined_rows(stream, master, how="semi", algorithm=algorithm)
    assert [row["row"] for row in semi] == [i for i in range(60) if i % 3 != 2]


def test_key_types_of_different_kinds_are_refused_before_any_row_is_read() -> None:
    master = CountingStore(MemoryStore(products(), "id"))
    with pytest.raises(KeyTypeError, match="'id' is string in the stream but int64 in the master"):
        ss.join(stream_of(["1"], pa.string()), master, on="id")
    assert master.counts.requests == 0


@pytest.mark.parametrize(
    ("stream_type", "master_type"),
    [(pa.int64(), pa.int32()), (pa.int8(), pa.int64()), (pa.uint16(), pa.int32()), (pa.uint64(), pa.int64())],
    ids=str,
)
def test_integer_keys_of_any_width_meet(stream_type: pa.DataType, master_type: pa.DataType) -> None:
    master = MemoryStore(pa.table({"id": pa.array([1, 2, 100], master_type), "name": ["a", "b", "c"]}), "id")
    rows = joined_rows(stream_of([2, 100, 3], stream_type), master, how="left")
    assert [row["name"] for row in rows] == ["b", "c", None]


def test_an_unsigned_key_beyond_the_signed_range_never_matches() -> None:
    master = MemoryStore(pa.table({"id": pa.array([-1, 5], pa.int64()), "name": ["a", "b"]}), "id")
    rows = joined_rows(stream_of([2**64 - 1, 5], pa.uint64()), master, how="left")
    assert [row["name"] for row in rows] == [None, "b"]


def test_decimals_of_different_scales_meet_only_where_they_are_equal() -> None:
    prices = pa.array([Decimal("1.50"), Decimal("2.00")], pa.decimal128(10, 2))
    master = MemoryStore(pa.table({"id": prices, "name": ["a", "b"]}), "id")
    keys = [Decimal("1.5000"), Decimal("1.5001"), Decimal("2.0000")]
    rows = joined_rows(stream_of(keys, pa.decimal128(12, 4)), master, how="left")
    assert [row["name"] for row in rows] == ["a", None, "b"]
    whole = joined_rows(
        stream_of([Decimal(2), Decimal(3), Decimal(10) ** 37], pa.decimal128(38, 0)), master, how="left"
    )
    assert [row["name"] for row in whole] == ["b", None, None]


def test_not_a_number_equals_itself_and_minus_zero_equals_zero() -> None:
    master = MemoryStore(pa.table({"id": pa.array([float("nan"), 0.0, 1.5]), "name": ["nan", "zero", "x"]}), "id")
    rows = joined_rows(stream_of([float("nan"), -0.0, 2.5], pa.float64()), master, how="left")
    assert [row["name"] for row in rows] == ["nan", "zero", None]


def test_decimals_above_38_digits_cannot_be_keys() -> None:
    with pytest.raises(KeyTypeError, match="more than 38 digits"):
        MemoryStore(pa.table({"id": pa.array([Decimal(1)], pa.decimal256(50, 0))}), "id")


def test_timestamps_with_and_without_a_zone_do_not_meet() -> None:
    noon = datetime.datetime(2026, 1, 1, 12)
    naive = MemoryStore(pa.table({"id": pa.array([noon], pa.timestamp("us"))}), "id")
    with pytest.raises(KeyTypeError, match="timestamp"):
        ss.join(stream_of([noon], pa.timestamp("us", "UTC")), naive, on="id")


def test_timestamps_of_any_zone_and_unit_meet_by_the_moment() -> None:
    noon = datetime.datetime(2026, 7, 1, 12, tzinfo=datetime.UTC)
    master = MemoryStore(pa.table({"id": pa.array([noon], pa.timestamp("us", "UTC")), "name": ["noon"]}), "id")
    rows = joined_rows(stream_of([noon], pa.timestamp("ms", "America/New_York")), master)
    assert [row["name"] for row in rows] == ["noon"]


@EVERY_ALGORITHM
def test_a_wide_value_passes_through_a_small_budget(algorithm: str) -> None:
    wide = "x" * 300_000
    names = [wide if i == 42 else f"product {i}" for i in range(2_000)]
    master = MemoryStore(pa.table({"id": np.arange(2_000), "name": names}), "id", rows_per_page=1)
    stream = stream_of([42, 7, 1999, 42], pa.int64())
    rows = joined_rows(stream, master, algorithm=algorithm, memory="8MB")
    assert [row["name"] for row in rows] == [wide, "product 7", "product 1999", wide]


@EVERY_ALGORITHM
def test_a_stream_row_above_the_budget_goes_to_the_dead_letters_and_the_join_goes_on(algorithm: str) -> None:
    master = MemoryStore(products(), "id")
    note = ["short", "y" * 2_000_000, "short"]
    stream = pa.table({"id": [1, 2, 3], "row": [0, 1, 2], "note": note})
    letters: list[tuple[pa.RecordBatch, str]] = []
    joined = ss.join(
        stream,
        master,
        on="id",
        algorithm=algorithm,
        memory="4MB",
        dead_letters=lambda rows, reason: letters.append((rows, reason)),
    )
    assert sorted(joined.read_all()["row"].to_pylist()) == [0, 2]
    assert [rows["row"].to_pylist() for rows, _ in letters] == [[1]]
    assert "too large" in letters[0][1]
    assert joined.stats.refused == 1
    assert joined.stats.tuples_out == 3


def test_a_page_above_the_budget_is_never_read_nor_read_ahead(tmp_path: Path) -> None:
    count, large = 20_000, (5_000, 15_000)
    names = ["x" * 3_000_000 if i in large else f"product {i:010d}" for i in range(count)]
    table = ss.MasterTable.build(pa.table({"id": np.arange(count), "name": names}), tmp_path / "t", "id")
    stream = stream_of(np.random.default_rng(1).permutation(count).tolist() * 5, pa.int64())
    letters: list[pa.RecordBatch] = []
    with table.open() as store:
        pages = store.locate(np.array(large)).tolist()
        master = CountingStore(store, log=True)
        joined = ss.join(stream, master, on="id", memory="8MB", dead_letters=lambda rows, _: letters.append(rows))
        assert joined.read_all().num_rows == 5 * (count - 2)
    assert {key for rows in letters for key in rows["id"].to_pylist()} == set(large)
    assert master.log is not None
    assert not [page for page in pages for first, last in master.log if first <= page <= last]


def test_without_dead_letters_a_row_above_the_budget_is_an_error() -> None:
    stream = pa.table({"id": [1, 2], "note": ["short", "y" * 2_000_000]})
    with pytest.raises(RowTooLargeError, match=r"A stream row is too large.*it takes 2.0 MB.*give at least 16.1 MB"):
        ss.join(stream, MemoryStore(products(), "id"), on="id", memory="4MB").read_all()
    assert ss.join(stream, MemoryStore(products(), "id"), on="id", memory="16.1MB").read_all().num_rows == 2


@EVERY_ALGORITHM
def test_the_key_of_a_master_row_above_the_budget_goes_to_the_dead_letters(algorithm: str) -> None:
    names = ["z" * 3_000_000 if i == 50 else f"product {i}" for i in range(100)]
    master = MemoryStore(pa.table({"id": np.arange(100), "name": names}), "id", rows_per_page=1, row_bytes=None)
    huge = _OneHugePage(master, page=50, size_bytes=3_000_000)
    letters: list[int] = []
    joined = ss.join(
        stream_of([49, 50, 51, 50], pa.int64()),
        huge,
        on="id",
        algorithm=algorithm,
        memory="4MB",
        dead_letters=lambda rows, _: letters.extend(rows["row"].to_pylist()),
    )
    assert sorted(joined.read_all()["row"].to_pylist()) == [0, 2]
    assert sorted(letters) == [1, 3]
    assert all(not (first <= 50 <= last) for first, last in huge.log)


class _OneHugePage(CountingStore):
    """A store one page of which is said to be huge, as it would be in a file."""

    def __init__(self, inside: MemoryStore, page: int, size_bytes: int) -> None:
        super().__init__(inside, log=True)
        self._page, self._size_bytes = page, size_bytes

    @property
    def largest_page_bytes(self) -> int:
        return self._size_bytes

    def range_bytes(self, first_page: int, last_page: int) -> int:
        return 50 * (last_page - first_page + 1) + (self._size_bytes if first_page <= self._page <= last_page else 0)


@EVERY_ALGORITHM
def test_an_empty_master_table_answers_nothing_and_an_empty_batch_is_no_error(algorithm: str) -> None:
    empty = MemoryStore(products(0), "id")
    stream = stream_of([1, 2], pa.int64())
    assert joined_rows(stream, empty, algorithm=algorithm) == []
    assert [row["name"] for row in joined_rows(stream, empty, how="left", algorithm=algorithm)] == [None, None]
    batches = [stream.to_batches()[0].slice(0, 0), *stream.to_batches(), stream.to_batches()[0].slice(0, 0)]
    assert ss.join(batches, MemoryStore(products(), "id"), on="id", algorithm=algorithm).read_all().num_rows == 2


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name != "inlj"])
def test_a_repeated_absent_key_does_not_read_the_store_again_and_again(algorithm: str) -> None:
    master = CountingStore(MemoryStore(products(5_000), "id", rows_per_page=8))
    stream = stream_of([2_500_000] * 20_000, pa.int64())
    joined = ss.join(stream, master, on="id", algorithm=algorithm, memory="4MB")
    assert joined.read_all().num_rows == 0
    assert joined.stats.absent == 20_000
    # MESHJOIN goes round the whole table whatever the keys are; the oracle reads the table once.
    rounds = 5 * master.page_count if "mesh" in algorithm or algorithm == "oracle" else 60
    assert master.counts.requests <= rounds


def test_an_added_column_is_ignored_and_a_dropped_or_retyped_one_stops_the_join() -> None:
    master = MemoryStore(products(), "id")
    first = pa.record_batch({"id": [1], "row": [0]})
    added = pa.record_batch({"id": [2], "extra": ["x"], "row": [1]})
    joined = ss.join([first, added], master, on="id").read_all()
    assert joined.column_names == ["id", "row", "name"]
    assert joined.num_rows == 2
    with pytest.raises(SchemaDriftError, match="'row' is missing"):
        ss.join([first, pa.record_batch({"id": [2]})], master, on="id").read_all()
    with pytest.raises(SchemaDriftError, match="'row' was int64 and is string"):
        ss.join([first, pa.record_batch({"id": [2], "row": ["1"]})], master, on="id").read_all()


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"on": "nokey"}, UnknownColumnError, "no column 'nokey'"),
        ({"on": ["id", "row"]}, UnknownColumnError, "master table's key is id"),
        ({"on": "id", "columns": ["price"]}, UnknownColumnError, "master table has no column 'price'"),
        ({"on": "id", "replace": {"nothing": "name"}}, UnknownColumnError, "stream has no column 'nothing'"),
        ({"on": "id", "columns": ["id"]}, NameClashError, "set `suffix`"),
        ({"on": "id", "how": "outer"}, InvalidSettingError, "inner, left, semi, anti"),
        ({"on": "id", "algorithm": "quickjoin"}, UnknownAlgorithmError, "no algorithm 'quickjoin'"),
        ({"on": "id", "memory": "lots"}, InvalidSettingError, "not a memory size"),
        ({"on": "id", "memory": "2KB"}, BudgetTooSmallError, "give at least about"),
        ({"on": "id", "parameters": {"speed": 11}}, InvalidSettingError, "no parameter 'speed'"),
        ({"on": "id", "max_wait": 0}, InvalidSettingError, "duration above 0"),
        ({"on": "id", "max_wait": 1, "algorithm": "meshjoin"}, InvalidSettingError, "cannot keep a deadline"),
    ],
)
def test_a_setting_that_makes_no_sense_is_one_sentence(
    options: dict[str, object], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence) as raised:
        ss.join(stream_of([1], pa.int64()), MemoryStore(products(), "id"), **options).read_all()  # type: ignore[arg-type]
    message = str(raised.value)
    assert message.endswith(".")
    assert "\n" not in message
