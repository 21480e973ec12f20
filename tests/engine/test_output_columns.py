"""The columns of the output, and what is refused before any data is read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from semistream.core.errors import InvalidSettingError, NameClashError, UnknownColumnError
from semistream.engine.output.output_plan import plan_output

STREAM = pa.schema([pa.field("id", pa.int64(), nullable=False), ("amount", pa.int32()), ("name", pa.string())])
MASTER = pa.schema(
    [pa.field("key", pa.int64()), pa.field("surrogate", pa.int64(), nullable=False), ("name", pa.string())]
)
ON = [("id", "key")]


def test_master_columns_follow_those_of_the_stream_without_its_key() -> None:
    plan = plan_output(STREAM, MASTER, ON, suffix="_m")
    assert plan.schema.names == ["id", "amount", "name", "surrogate", "name_m"]
    assert plan.schema.types == [pa.int64(), pa.int32(), pa.string(), pa.int64(), pa.string()]
    assert plan.master_columns == ("surrogate", "name")


def test_a_replaced_column_gives_its_place_to_the_master_column() -> None:
    plan = plan_output(STREAM, MASTER, ON, replace={"id": "surrogate"}, columns=[])
    assert plan.schema.names == ["surrogate", "amount", "name"]


def test_the_key_of_the_master_can_be_asked_for() -> None:
    assert plan_output(STREAM, MASTER, ON, columns=["key"]).schema.names == ["id", "amount", "name", "key"]


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_without_master_rows_the_columns_are_those_of_the_stream(how: str) -> None:
    assert plan_output(STREAM, MASTER, ON, how=how).schema.equals(STREAM)


def test_under_left_the_master_columns_may_be_null() -> None:
    inner, left = (plan_output(STREAM, MASTER, ON, how=how, columns=["surrogate"]) for how in ("inner", "left"))
    assert not inner.schema.field("surrogate").nullable
    assert left.schema.field("surrogate").nullable
    assert not left.schema.field("id").nullable


def test_rows_are_assembled_with_nulls_where_there_is_no_master_row() -> None:
    plan = plan_output(STREAM, MASTER, ON, how="left", columns=["surrogate"])
    stream = pa.RecordBatch.from_pylist([{"id": 1, "amount": 2, "name": "x"}], schema=STREAM)
    assert plan.assemble(stream, None).to_pylist() == [{"id": 1, "amount": 2, "name": "x", "surrogate": None}]
    master = pa.RecordBatch.from_pydict({"surrogate": [7]})
    assert plan.assemble(stream, master).to_pylist() == [{"id": 1, "amount": 2, "name": "x", "surrogate": 7}]


def test_an_unknown_kind_of_join_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match=r"'outer'.*inner, left, semi, anti"):
        plan_output(STREAM, MASTER, ON, how="outer")


@pytest.mark.parametrize(
    ("arguments", "column", "where"),
    [
        ({"columns": ["colour"]}, "colour", "master table"),
        ({"replace": {"colour": "surrogate"}}, "colour", "stream"),
        ({"replace": {"id": "colour"}}, "colour", "master table"),
    ],
)
def test_an_unknown_column_is_named_with_its_side(arguments: dict[str, object], column: str, where: str) -> None:
    with pytest.raises(UnknownColumnError, match=f"The {where} has no column '{column}'"):
        plan_output(STREAM, MASTER, ON, **arguments)


def test_an_unknown_key_of_the_stream_is_refused() -> None:
    with pytest.raises(UnknownColumnError, match="colour"):
        plan_output(STREAM, MASTER, [("colour", "key")])


def test_a_name_that_both_have_needs_a_suffix() -> None:
    with pytest.raises(NameClashError, match="'name'"):
        plan_output(STREAM, MASTER, ON)
    clashing = STREAM.append(pa.field("name_m", pa.string()))
    with pytest.raises(NameClashError, match="suffix '_m'"):
        plan_output(clashing, MASTER, ON, suffix="_m")


def test_a_column_name_that_stands_twice_cannot_be_a_key() -> None:
    with pytest.raises(NameClashError, match="2 columns named 'id'"):
        plan_output(STREAM.append(pa.field("id", pa.int64())), MASTER, ON, columns=[])


def test_a_replacing_column_must_not_take_the_name_of_another() -> None:
    with pytest.raises(NameClashError):
        plan_output(STREAM, MASTER, ON, replace={"id": "name"}, columns=[])
