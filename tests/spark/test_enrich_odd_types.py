"""Master columns of any Arrow type reach Spark exactly, or are refused when the query is planned."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from enrich_runs import build
from pyspark.sql import SparkSession

import semistream as ss
from semistream.core.errors import SemistreamError

_MOMENT = dt.datetime(2024, 2, 29, 23, 59, 59, 123456)

EXACT: dict[str, tuple[pa.Array, str]] = {
    "u8": (pa.array([255, None], pa.uint8()), "smallint"),
    "u16": (pa.array([65535, 0], pa.uint16()), "int"),
    "u32": (pa.array([2**32 - 1, 0], pa.uint32()), "bigint"),
    "u64": (pa.array([2**64 - 1, 0], pa.uint64()), "decimal(20,0)"),
    "half": (pa.array([1.5, None], pa.float16()), "float"),
    "decimal 256": (pa.array([Decimal("12345678.90"), None], pa.decimal256(38, 2)), "decimal(38,2)"),
    "small decimal": (pa.array([Decimal("1.25"), None], pa.decimal32(5, 2)), "decimal(5,2)"),
    "hundreds": (pa.array([Decimal("1200"), None], pa.decimal128(4, -2)), "decimal(6,0)"),
    "seconds": (pa.array([_MOMENT.replace(microsecond=0), None], pa.timestamp("s")), "timestamp_ntz"),
    "micros": (pa.array([_MOMENT, None], pa.timestamp("us", "Europe/Berlin")), "timestamp"),
    "span": (pa.array([dt.timedelta(days=3, seconds=5), None], pa.duration("s")), "interval day to second"),
    "letters": (pa.array(["a", None], pa.large_string()), "string"),
    "code": (pa.array([b"abcd", None], pa.binary(4)), "binary"),
    "dictionary": (pa.array(["x", None]).dictionary_encode(), "string"),
    "view": (pa.array(["x" * 30, None], pa.string_view()), "string"),
    "list view": (pa.array([[1, None], None], pa.list_view(pa.int32())), "array<int>"),
    "large list": (pa.array([[1, None], None], pa.large_list(pa.uint16())), "array<int>"),
    "pair": (pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), "array<int>"),
    "struct": (
        pa.array([{"d": Decimal("1.5")}, None], pa.struct([("d", pa.decimal256(9, 1))])),
        "struct<d:decimal(9,1)>",
    ),
}
REFUSED: dict[str, tuple[pa.DataType, Any, str]] = {
    "ns": (pa.timestamp("ns"), _MOMENT, "end at microseconds"),
    "zoned ns": (pa.timestamp("ns", "UTC"), _MOMENT, "end at microseconds"),
    "span of ns": (pa.duration("ns"), dt.timedelta(1), "end at microseconds"),
    "time of ns": (pa.time64("ns"), dt.time(1), "end at microseconds"),
    "list of ns": (pa.list_(pa.timestamp("ns")), [_MOMENT], "end at microseconds"),
    "map of ns": (pa.map_(pa.string(), pa.duration("ns")), [("a", dt.timedelta(1))], "end at microseconds"),
    "wide decimal": (pa.decimal256(39, 2), Decimal("1.25"), "at most 38 digits"),
    "struct of wide": (pa.struct([("d", pa.decimal256(76, 0))]), {"d": Decimal(1)}, "at most 38 digits"),
    "far scale": (pa.decimal128(38, -2), Decimal(100), "at most 38 digits"),
    "months": (pa.month_day_nano_interval(), (1, 2, 3), "which Spark does not have"),
    "date64": (pa.date64(), dt.date(2024, 1, 1), "which Spark does not have"),
}


def test_columns_that_spark_can_show_exactly_come_out_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    columns = {"id": pa.array([1, 2], pa.int64()), **{name: values for name, (values, _) in EXACT.items()}}
    table = build(tmp_path, pa.table(columns), "id")
    enriched = ss.enrich(spark.range(1, 4), table, on="id", how="left", memory="4MB", matched="known")
    assert {field.name: field.dataType.simpleString() for field in enriched.schema} == {
        "id": "bigint",
        **{name: kind for name, (_, kind) in EXACT.items()},
        "known": "boolean",
    }
    found = enriched.orderBy("id").collect()
    assert [row["known"] for row in found] == [True, True, False]
    for name, (values, _) in EXACT.items():
        expected = values.to_pylist()
        shown = [_plain(row[name]) for row in found]
        if name == "micros":  # Spark hands out moments in the zone of this machine
            expected = [None if value is None else value.astimezone().replace(tzinfo=None) for value in expected]
        assert shown == [*expected, None], name


def _plain(value: Any) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    return value.asDict() if hasattr(value, "asDict") else value


def test_columns_that_spark_cannot_show_exactly_are_refused_at_plan_time(spark: SparkSession, tmp_path: Path) -> None:
    columns = {name: pa.array([value], kind) for name, (kind, value, _) in REFUSED.items()}
    table = build(tmp_path, pa.table({"id": [1], "v": ["x"], **columns}), "id")
    for name, (kind, _, says) in REFUSED.items():
        with pytest.raises(SemistreamError, match=says) as raised:
            ss.enrich(spark.range(3), table, on="id", columns=[name], memory="4MB")
        assert f"{name!r} is {kind}" in str(raised.value)
        assert "\n" not in str(raised.value)
    with pytest.raises(SemistreamError, match="end at microseconds"):
        ss.enrich(spark.range(3), table, on="id", memory="4MB")
    assert ss.enrich(spark.range(3), table, on="id", columns=["v"], memory="4MB").columns == ["id", "v"]
