"""Building tables from data of every form, in any order and of any size."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_model import all_rows, tables

from semistream.core.errors import (
    DuplicateKeyError,
    InvalidSettingError,
    KeyTypeError,
    NameClashError,
    NullKeyError,
    SchemaDriftError,
    UnknownColumnError,
)
from semistream.core.keys import KeyCodec
from semistream.master_table import MasterTable
from semistream.store.paged import PagedFileStore, build
from semistream.store.paged.write import sorting as sorting_module


def numbers(count: int = 5000, seed: int = 1) -> pa.Table:
    order = np.random.default_rng(seed).permutation(count)
    text = [f"row {number:06d} " + "x" * (number % 50) for number in order]
    return pa.table({"id": order, "text": pa.array(text, pa.string())})


@settings(max_examples=60, deadline=None)
@given(table_and_key=tables(), page_bytes=st.sampled_from([512, 2048]), memory=st.sampled_from(["1KB", "64MB"]))
def test_all_pages_give_back_the_table(table_and_key: tuple[pa.Table, list[str]], page_bytes: int, memory: str) -> None:
    rows, key = table_and_key
    with tempfile.TemporaryDirectory() as directory:
        table = MasterTable.build(rows, f"{directory}/t", key, page_bytes=page_bytes, memory=memory)
        with table.open() as store:
            assert store.schema.equals(rows.schema)
            codes = store.codec.encode([rows.column(name).combine_chunks() for name in key]).codes
            expected = rows.take(pa.array(np.argsort(codes, kind="stable"))).to_pylist()
            assert all_rows(store) == expected
            assert isinstance(store, PagedFileStore)
            several_codes = store.entries.row_counts > 1
            assert (store.entries.lengths[several_codes] <= page_bytes).all()
        assert table.verify()["rows"] == len(rows)


def test_sorted_input_goes_straight_to_the_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting_module.ExternalSort, "add", lambda *_: pytest.fail("sorted input was sorted again"))
    rows = numbers().sort_by("id")
    build(rows, tmp_path / "t", "id", memory="100KB")
    assert all_rows(PagedFileStore(tmp_path / "t")) == rows.to_pylist()


def test_input_that_is_sorted_at_first_keeps_its_order_among_equal_keys(tmp_path: Path) -> None:
    start = pa.table({"id": np.repeat(np.arange(3000), 2), "n": np.arange(6000)})
    later = pa.table({"id": np.random.default_rng(3).integers(0, 3000, 4000), "n": np.arange(6000, 10_000)})
    rows = pa.concat_tables([start, later])
    build(rows, tmp_path / "t", "id", on_duplicate="all", memory="60KB")
    assert (
        all_rows(PagedFileStore(tmp_path / "t")) == rows.sort_by([("id", "ascending"), ("n", "ascending")]).to_pylist()
    )


@pytest.mark.parametrize("fan_in", [2, 64])
def test_shuffled_input_larger_than_memory_is_sorted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fan_in: int
) -> None:
    monkeypatch.setattr(sorting_module, "_FAN_IN", fan_in)
    rows = numbers(20_000)
    build(rows, tmp_path / "t", "id", memory="300KB")
    assert all_rows(PagedFileStore(tmp_path / "t")) == rows.sort_by("id").to_pylist()
    assert not list((tmp_path / "t").glob("tmp-*"))


def test_pages_come_near_their_target_and_not_above_it(tmp_path: Path) -> None:
    build(numbers(20_000), tmp_path / "t", "id", page_bytes=8192)
    lengths = PagedFileStore(tmp_path / "t").entries.lengths
    assert lengths.max() <= 8192
    assert lengths[:-1].min() > 0.9 * 8192


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize(
    ("max_bytes", "is_known", "expected"),
    [(2_000_000, True, 4096), (500_000, True, 8192), (2_000_000, False, 8192)],
    ids=["small", "large", "of unknown size"],
)
def test_only_tables_that_are_known_to_be_small_get_small_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_bytes: int, is_known: bool, expected: int, is_sorted: bool
) -> None:
    monkeypatch.setattr(import_module("semistream.store.paged.write.build"), "_SMALL_TABLE_BYTES", max_bytes)
    rows = numbers(20_000)  # of about a megabyte
    rows = rows.sort_by("id") if is_sorted else rows
    build(rows if is_known else rows.to_batches(), tmp_path / "t", "id")
    store = PagedFileStore(tmp_path / "t")
    assert store.manifest.page_bytes == expected
    assert 0.9 * expected < store.entries.lengths[:-1].min() <= store.entries.lengths.max() <= expected


def test_an_empty_table_has_pages_of_some_size(tmp_path: Path) -> None:
    build(numbers(0), tmp_path / "t", "id")
    assert PagedFileStore(tmp_path / "t").manifest.page_bytes == 8192


def test_a_value_of_300_kb_gets_a_page_of_its_own(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3, 4], "blob": ["a", "b" * 300_000, "c", "d" * 70_000]})
    build(rows, tmp_path / "t", "id")
    store = PagedFileStore(tmp_path / "t")
    assert store.entries.row_counts.tolist() == [1, 1, 1, 1]
    assert store.largest_page_bytes > 300_000
    assert all_rows(store) == rows.to_pylist()


@pytest.mark.parametrize("form", ["table", "batch", "reader", "batches", "parquet", "csv", "arrow", "list", "folder"])
def test_data_may_come_in_many_forms(tmp_path: Path, form: str) -> None:
    rows = numbers(1000)
    half = [rows.slice(0, 500), rows.slice(500)]
    folder = tmp_path / "parts"
    folder.mkdir()
    for part, content in enumerate(half):
        pa.parquet.write_table(content, folder / f"{part}.parquet")
    pa.csv.write_csv(rows, tmp_path / "rows.csv")
    with pa.ipc.new_file(tmp_path / "rows.arrow", rows.schema) as sink:
        sink.write_table(rows)
    pa.parquet.write_table(rows, tmp_path / "rows.parquet")
    data = {
        "table": rows,
        "batch": rows.combine_chunks().to_batches()[0],
        "reader": pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=100)),
        "batches": (batch for batch in rows.to_batches(max_chunksize=100)),
        "parquet": str(tmp_path / "rows.parquet"),
        "csv": tmp_path / "rows.csv",
        "arrow": tmp_path / "rows.arrow",
        "list": [folder / "0.parquet", folder / "1.parquet"],
        "folder": folder,
    }[form]
    build(data, tmp_path / "t", "id")
    assert all_rows(PagedFileStore(tmp_path / "t")) == rows.sort_by("id").to_pylist()


def test_dictionaries_and_views_are_stored_as_plain_values(tmp_path: Path) -> None:
    plain = ["red", "green", None, "red"]
    rows = pa.table(
        {
            "id": [3, 1, 2, 4],
            "colour": pa.array(plain).dictionary_encode(),
            "view": pa.array(plain, pa.string_view()),
            "list": pa.array([[name] for name in plain], pa.list_(pa.string())),
        }
    )
    build(rows, tmp_path / "t", "id")
    store = PagedFileStore(tmp_path / "t")
    assert store.schema.field("colour").type == pa.string()
    assert store.schema.field("view").type == pa.string()
    assert all_rows(store) == sorted(rows.to_pylist(), key=lambda row: row["id"])


def test_null_keys_are_refused_with_their_count(tmp_path: Path) -> None:
    rows = pa.table({"a": [1, None, 3] * 1000, "b": ["x", "y", None] * 1000})
    with pytest.raises(NullKeyError, match=r"^2000 master rows have a null key"):
        build(rows, tmp_path / "t", ["a", "b"], memory="10KB")


def test_a_duplicate_key_is_refused_by_name(tmp_path: Path) -> None:
    rows = pa.concat_tables([numbers(3000), numbers(1).set_column(0, "id", pa.array([1234]))])
    with pytest.raises(DuplicateKeyError, match=r"id=1234 "):
        build(rows, tmp_path / "t", "id", memory="50KB")


def test_latest_keeps_the_last_row_of_a_key_in_input_order(tmp_path: Path) -> None:
    keys = np.random.default_rng(5).integers(0, 500, 9000)
    for name, column in (("int", pa.array(keys)), ("text", pa.array([f"k{key}" for key in keys]))):
        rows = pa.table({"id": column, "n": np.arange(9000)})
        build(rows, tmp_path / name, "id", on_duplicate="latest", memory="50KB")
        expected = dict(zip(rows["id"].to_pylist(), rows["n"].to_pylist(), strict=True))
        store = PagedFileStore(tmp_path / name)
        assert {row["id"]: row["n"] for row in all_rows(store)} == expected
        assert (store.unique, store.row_count) == (True, len(expected))


def test_all_keeps_every_row_of_a_key_in_input_order(tmp_path: Path) -> None:
    keys = np.random.default_rng(5).integers(0, 500, 9000)
    rows = pa.table({"id": keys, "n": np.arange(9000)})
    build(rows, tmp_path / "t", "id", on_duplicate="all", memory="50KB")
    store = PagedFileStore(tmp_path / "t")
    assert all_rows(store) == rows.sort_by([("id", "ascending"), ("n", "ascending")]).to_pylist()
    assert not store.unique


@pytest.fixture
def colliding_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the codes of hashed keys fall into few values, so that different keys share codes all the time."""
    encode = KeyCodec.encode

    def coarse(self: KeyCodec, columns: list[pa.Array]) -> object:
        encoded = encode(self, columns)
        return encoded if self.exact else type(encoded)(encoded.codes % 7, encoded.usable, encoded.null_count)

    monkeypatch.setattr(KeyCodec, "encode", coarse)


@pytest.mark.usefixtures("colliding_codes")
@pytest.mark.parametrize("rule", ["error", "latest", "all"])
def test_different_keys_of_one_code_are_not_duplicates(tmp_path: Path, rule: str) -> None:
    keys = [f"k{number}" for number in range(100)]
    if rule != "error":
        keys = keys + keys[::3]
    rows = pa.table({"id": keys, "n": np.arange(len(keys))})
    table = MasterTable.build(rows, tmp_path / "t", "id", on_duplicate=rule)
    actual = all_rows(table.open())
    expected = rows.to_pylist()
    if rule == "latest":
        expected = [{"id": key, "n": n} for key, n in {row["id"]: row["n"] for row in expected}.items()]
    assert sorted(actual, key=lambda row: row["n"]) == sorted(expected, key=lambda row: row["n"])
    table.merge(pa.table({"id": ["k5", "new"], "n": [-5, -6]}), pa.table({"id": ["k7", "k8", "absent"]}))
    merged = [row for row in expected if row["id"] not in ("k5", "k7", "k8")]
    merged += [{"id": "k5", "n": -5}, {"id": "new", "n": -6}]
    assert sorted(all_rows(table.open()), key=repr) == sorted(merged, key=repr)


def test_an_empty_table_can_be_built_read_and_filled(tmp_path: Path) -> None:
    table = MasterTable.build(numbers(0), tmp_path / "t", "id")
    assert all_rows(table.open()) == []
    assert table.verify()["pages"] == 0
    table.merge(numbers(100))
    assert all_rows(table.open()) == numbers(100).sort_by("id").to_pylist()
    table.merge(deletes=numbers(100))
    assert (table.open().row_count, table.version, table.info()["files"][1:]) == (0, 3, [])


def test_a_second_build_makes_a_new_version_and_the_old_one_stays_readable(tmp_path: Path) -> None:
    table = MasterTable.build(numbers(100), tmp_path / "t", "id")
    MasterTable.build(numbers(50), tmp_path / "t", "id")
    assert (table.version, table.open().row_count, table.open(version=1).row_count) == (2, 50, 100)


def test_progress_is_told(tmp_path: Path) -> None:
    steps: list[tuple[str, int, int | None]] = []
    build(numbers(5000), tmp_path / "t", "id", memory="100KB", progress=lambda *what: steps.append(what))
    assert ("reading", 5000, 5000) in steps
    assert steps[-1] == ("writing", 5000, 5000)


def test_settings_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    rows = numbers(10)
    with pytest.raises(UnknownColumnError, match="'colour'"):
        build(rows, tmp_path / "t", "colour")
    with pytest.raises(InvalidSettingError, match="on_duplicate"):
        build(rows, tmp_path / "t", "id", on_duplicate="first")
    with pytest.raises(InvalidSettingError, match="page_bytes"):
        build(rows, tmp_path / "t", "id", page_bytes=0)
    with pytest.raises(InvalidSettingError, match="no file"):
        build(tmp_path / "absent.parquet", tmp_path / "t", "id")
    with pytest.raises(InvalidSettingError, match="int is not data"):
        build(5, tmp_path / "t", "id")
    with pytest.raises(NameClashError, match="'id'"):
        build(pa.table([[1], [2]], names=["id", "id"]), tmp_path / "t", "id")
    with pytest.raises(KeyTypeError, match="64 bits"):
        build(pa.table({"id": pa.array([2**63], pa.uint64())}), tmp_path / "t", "id")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").touch()
    with pytest.raises(InvalidSettingError, match=r"notes\.txt"):
        build(rows, tmp_path / "foreign", "id")


def test_batches_of_different_schemas_are_refused(tmp_path: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": [1]})
        yield pa.record_batch({"id": ["1"]})

    with pytest.raises(SchemaDriftError, match="id string"):
        build(batches(), tmp_path / "t", "id")


def test_files_may_differ_in_the_order_of_columns_but_not_in_their_types(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"id": [1], "n": [10]}), tmp_path / "a.parquet")
    pa.parquet.write_table(pa.table({"n": [20], "extra": [0], "id": [2]}), tmp_path / "b.parquet")
    build([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "t", "id")
    assert all_rows(PagedFileStore(tmp_path / "t")) == [{"id": 1, "n": 10}, {"id": 2, "n": 20}]
    pa.parquet.write_table(pa.table({"id": [2], "n": ["20"]}), tmp_path / "b.parquet")
    with pytest.raises(SchemaDriftError, match="n string"):
        build([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "t", "id")


_MEASURE = """
import resource, sys
import numpy as np, pyarrow as pa, pyarrow.parquet
from semistream.store.paged import build, merge, PagedFileStore
form, rows, memory, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
def batches(rows):
    for start in range(0, rows, 10_000):
        numbers = np.arange(start, start + 10_000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        text = pa.array(["%080d" % n for n in range(start, start + 10_000)])
        yield pa.record_batch({"id": numbers.view(np.int64), "text": text, "price": numbers.astype(float)})
small = pa.table({"id": [3, 1], "text": ["a", "b"], "price": [1.0, 2.0]})
build(small, path, "id")
if form == "parquet":
    first = next(batches(10_000))
    with pyarrow.parquet.ParquetWriter(path + ".parquet", first.schema) as writer:
        for batch in batches(rows):
            writer.write_batch(batch, row_group_size=100_000)
    data = path + ".parquet"
else:
    data = batches(rows)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
build(data, path, "id", memory=memory) if form != "merge" else merge(path, data, memory=memory)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert PagedFileStore(path).row_count >= rows
print((after - before) * 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["batches", "parquet", "merge"])
def test_a_build_or_merge_of_ten_times_the_memory_stays_within_the_memory(tmp_path: Path, form: str) -> None:
    memory = 40_000_000
    command = [sys.executable, "-c", _MEASURE, form, "4000000", str(memory), str(tmp_path / "t")]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    # What Arrow's Parquet reader keeps for itself does not depend on the memory.
    assert grown < memory + (80_000_000 if form == "parquet" else 32_000_000)


def test_columns_of_unusual_types_and_names_are_stored(tmp_path: Path) -> None:
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    rows = pa.table(
        {
            "__code": [7, 8, 9],
            "words": pa.ListArray.from_arrays([0, 2, 2, 3], words),
            "uuid": pa.array([bytes(16), None, bytes(range(16))], pa.uuid()),
            "key": ["x", "y", "z"],
        }
    )
    table = MasterTable.build(rows, tmp_path / "t", "key")
    store = table.open()
    assert store.schema.field("words").type == pa.list_(pa.string())
    assert sorted(all_rows(store), key=lambda row: row["key"]) == rows.to_pylist()
    table.merge(rows.slice(1, 1), rows.slice(0, 1))
    assert sorted(all_rows(table.open()), key=lambda row: row["key"]) == rows.to_pylist()[1:]
    table.verify()


def test_a_damaged_source_stops_the_build(tmp_path: Path) -> None:
    pa.parquet.write_table(numbers(5000), tmp_path / "rows.parquet", compression="none")
    content = bytearray((tmp_path / "rows.parquet").read_bytes())
    content[4:2000] = b"\xff" * 1996
    (tmp_path / "rows.parquet").write_bytes(content)
    with pytest.raises(InvalidSettingError, match="cannot be read"):
        build(tmp_path / "rows.parquet", tmp_path / "t", "id")
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidSettingError, match="cannot be read as parquet"):
        build(tmp_path / "rows.parquet", tmp_path / "t", "id")
