"""What people pass to `join` is taken, or refused in one sentence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import semistream as ss
from semistream.core.budget import parse_bytes
from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.joining.join_types import join_type

STREAM = pa.table({"id": [1, 2, 3], "n": ["a", "b", "c"]})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("arguments") / "master"
    ss.MasterTable.build(pa.table({"id": [1, 3], "v": ["x", "y"]}), path, "id")
    return path


def refused(says: str, *given: Any, **settings: Any) -> None:
    with pytest.raises(SemistreamError, match=says) as raised:
        list(ss.join(*given, **{"on": "id", **settings}))
    message = str(raised.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert len(message) < 300
    assert not re.findall(r"\. [A-Z]", message), "more than one sentence"


@pytest.mark.parametrize(
    "given",
    [
        STREAM.to_batches()[0],
        STREAM.to_pandas(),
        STREAM.to_batches(),
        STREAM.to_reader(),
        iter([None, *STREAM.to_batches()]),
    ],
    ids=["batch", "pandas", "list", "reader", "iterator"],
)
def test_whatever_holds_record_batches_is_a_stream(table: Path, given: Any) -> None:
    joined = ss.join(given, table, on="id").read_all().sort_by("id")
    assert joined.to_pylist() == [{"id": 1, "n": "a", "v": "x"}, {"id": 3, "n": "c", "v": "y"}]


def test_what_is_no_stream_is_told_what_one_is(table: Path, tmp_path: Path) -> None:
    refused("A path is not a stream", str(tmp_path), table)
    refused("A path is not a stream", tmp_path, table)
    refused("of type int is not a stream", 5, table)
    refused("of type NoneType is not a stream", None, table)
    refused("of type dict is not a record batch", [{"id": 1}], table)
    refused("of type dict is not a record batch", iter([{"id": 1}]), table)
    refused("of type Table is not a record batch", [STREAM], table)


def test_data_given_as_a_master_is_told_how_to_build_one() -> None:
    for data in (STREAM, STREAM.to_batches()[0], STREAM.to_reader(), STREAM.to_pandas(), STREAM.to_batches()):
        refused(r"MasterTable\.build\(data, path, key=\.\.\.\)", STREAM, data)
    for nothing in (None, 5, "", {"id": [1]}):
        refused("is not the address of a master table", STREAM, nothing)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"on": 5}, "^on is 5"),
        ({"on": None}, "^on is None"),
        ({"on": {"id": 1}}, "^on is "),
        ({"columns": "v"}, "^columns is 'v': give a list"),
        ({"columns": [1]}, "^columns is "),
        ({"replace": ["v"]}, "^replace is "),
        ({"suffix": 5}, "^suffix is 5"),
        ({"parameters": 0.5}, "^parameters is 0.5"),
        ({"parameters": {"cache_share": "a"}}, "'cache_share' must be from .*, but is 'a'"),
        ({"max_wait": "one second"}, "max_wait must be a duration above 0"),
        ({"memory": None}, "not a memory size"),
        ({"how": None}, "not a join type"),
        ({"algorithm": None}, "no algorithm"),
    ],
)
def test_arguments_of_wrong_types_are_refused_in_one_sentence(table: Path, settings: dict[str, Any], says: str) -> None:
    refused(says, STREAM, table, **settings)


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("inner", "INNER"), "inner"),
        (("left", "left_outer", "leftouter", "LeftOuter"), "left"),
        (("semi", "left_semi", "leftsemi"), "semi"),
        (("anti", "left_anti", "leftanti"), "anti"),
    ],
)
def test_the_names_that_spark_has_for_joins_are_taken(table: Path, names: tuple[str, ...], kind: str) -> None:
    expected = ss.join(STREAM, table, on="id", how=kind).read_all().sort_by("id")
    for name in names:
        assert join_type(name) == kind
        assert ss.join(STREAM, table, on="id", how=name).read_all().sort_by("id").equals(expected)


@pytest.mark.parametrize("how", ["right", "rightouter", "right_outer", "outer", "full", "full_outer", "fullouter"])
def test_joins_that_keep_master_rows_alone_are_refused(table: Path, how: str) -> None:
    refused("would add the master rows that no stream row ever matches", STREAM, table, how=how)


def test_names_that_differ_by_case_are_different_columns_without_spark(table: Path) -> None:
    joined = ss.join(pa.table({"id": [1], "V": ["mine"]}), table, on="id").read_all()
    assert joined.to_pylist() == [{"id": 1, "V": "mine", "v": "x"}]
    refused("no column 'ID'", STREAM, table, on="ID")


def test_sizes_as_spark_writes_them_are_powers_of_1024() -> None:
    assert [parse_bytes(size) for size in ("64k", "512m", "1g", "2T", "1.5G")] == [
        64 << 10,
        512 << 20,
        1 << 30,
        2 << 40,
        3 << 29,
    ]
    assert parse_bytes("64MB") == 64_000_000
    for size in ("1p", "g", "1gg"):
        with pytest.raises(InvalidSettingError, match="memory size"):
            parse_bytes(size)


def test_settings_of_odd_types_are_refused_before_the_first_row(table: Path) -> None:
    refused("dead_letters is 3: give a function", STREAM, table, dead_letters=3)
    refused("seed is 'x': give a whole number", STREAM, table, seed="x")
    refused("seed is None: give a whole number", STREAM, table, seed=None)
    refused("There is no algorithm", STREAM, table, algorithm=["inlj"])
    refused("more than any machine has", STREAM, table, memory=10**30)
    refused("on is {}: give a column name", STREAM, table, on={})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"columns": ["v", "v"]}, "columns names the column 'v' twice: name each column once"),
        ({"on": ["id", "id"]}, "on names the column 'id' twice: name each column once"),
        ({"columns": ["v", "v"], "suffix": "_m"}, "columns names the column 'v' twice"),
        ({"memory": 1.5}, "1.5 is not a memory size: give a number of bytes, or a string such as '64MB'"),
        ({"memory": [1]}, "is not a memory size: give a number of bytes"),
        ({"memory": "1.5"}, "'1.5' is not a whole number of bytes: add a unit, such as MB"),
    ],
)
def test_a_column_named_twice_and_a_broken_size_are_refused(table: Path, settings: dict[str, Any], says: str) -> None:
    refused(re.escape(says), STREAM, table, **settings)


@pytest.mark.parametrize("memory", [64e6, "64MB", "64000000"])
def test_a_whole_number_of_bytes_may_have_any_form(memory: Any) -> None:
    assert parse_bytes(memory) == 64_000_000


@pytest.mark.parametrize("batches", [1, 3])
def test_an_iterator_of_empty_batches_gives_an_empty_table_with_its_columns(table: Path, batches: int) -> None:
    empty = STREAM.schema.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], schema=STREAM.schema)]
    joined = ss.join(iter(empty * batches), table, on="id", memory="4MB")
    assert joined.read_all().schema.names == ["id", "n", "v"]


def test_an_iterator_without_a_batch_says_that_its_columns_are_not_known(table: Path) -> None:
    with pytest.raises(InvalidSettingError, match="had no batch, so its columns are not known: pass a reader"):
        ss.join(iter([]), table, on="id", memory="4MB").read_all()


@pytest.mark.parametrize("given", [3, 3.5, object()])
def test_errors_name_types_without_an_article_that_may_be_wrong(tmp_path: Path, given: Any) -> None:
    name = type(given).__name__
    with pytest.raises(SemistreamError, match=f"An object of type {name} is not data for a master table"):
        ss.MasterTable.build(given, tmp_path / "built", "id")
    with pytest.raises(SemistreamError, match=f"An object of type {name} has no progress"):
        ss.progress(given)
