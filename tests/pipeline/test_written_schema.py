"""Schemas are checked before Spark is there: what Spark takes is taken, and mistakes name the word."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from semistream.core.errors import InvalidSettingError
from semistream.pipeline.toml_table import TomlTable
from semistream.pipeline.written_schema import WrittenSchema

_PLAIN = (
    *("BIGINT", "int", "Decimal(10, 2)", "TIMESTAMP", "timestamp_ntz", "STRING", "BINARY", "DATE", "varchar(5)"),
    *("BOOLEAN NOT NULL", "DOUBLE COMMENT 'a, b'", "INTERVAL DAY TO SECOND"),
)
_TYPES = st.recursive(
    st.sampled_from(_PLAIN[:9]),
    lambda inner: st.one_of(
        inner.map(lambda one: f"ARRAY<{one}>"),
        st.tuples(inner, inner).map(lambda two: f"map<{two[0]}, {two[1]}>"),
        st.tuples(inner, inner).map(lambda two: f"STRUCT<a: {two[0]}, `b c`: {two[1]}>"),
    ),
    max_leaves=6,
)
_NAMES = st.sampled_from(["a", "sale_id", "`with space`", "`x,y`", "`q``q`", "größe_", "_b", "col1"])


def read(text: str) -> tuple[str, ...]:
    """Return the columns of a text, as the file of a pipeline has it."""
    table = TomlTable("[source]", {"schema": text}, ("schema",))
    return WrittenSchema.read(table, "schema", text).columns


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(columns=st.lists(st.tuples(_NAMES, st.one_of(st.sampled_from(_PLAIN), _TYPES)), min_size=1, max_size=4))
def test_what_spark_takes_is_taken_with_the_same_names(spark: SparkSession, columns: list[tuple[str, str]]) -> None:
    assert spark
    text = ", ".join(f"{name} {kind}" for name, kind in columns)
    try:
        expected = StructType.fromDDL(text).names
    except PySparkException:
        return
    if len({name.lower() for name in expected}) == len(expected):
        assert list(read(text)) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a BIGNT", "'BIGNT' is not a type, did you mean 'bigint'?"),
        ("a INT, b", "the column 'b' has no type"),
        ("a INT,", "'' is not a column"),
        ("a ARRAY<INT", "'>' is missing at the end"),
        ("a INT)", "the bracket ')' closes nothing"),
        ("a MAP<INT>", "MAP must have 2 types"),
        ("a ARRAY", "ARRAY must say of what, such as ARRAY<STRING>"),
        ("a STRUCT<x: INTT>", "'INTT' is not a type"),
        ("a INT, A STRING", "two columns 'A'"),
        ("_semistream_x INT", "cannot have the column '_semistream_x'"),
        ("`a INT", "'`' is missing at the end"),
    ],
)
def test_a_mistake_is_named(text: str, says: str) -> None:
    with pytest.raises(InvalidSettingError) as refused:
        read(text)
    assert says in str(refused.value)


def test_an_unknown_type_in_a_file_names_its_table(tmp_path: Path) -> None:
    from semistream.pipeline import read_description

    file = tmp_path / "p.toml"
    file.write_text(
        '[pipeline]\nname="p"\ncheckpoint="c"\n[source]\nformat="json"\npath="i"\nschema="a INTT"\n'
        '[[dimension]]\ntable="t"\non="a"\n[sink]\nformat="noop"\n'
    )
    with pytest.raises(InvalidSettingError, match=r"\[source\] schema is not a list of columns: 'INTT' is not a type"):
        read_description(file)
