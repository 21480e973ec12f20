"""Random rows for tests that build master tables with and without Spark, and a way to compare the tables."""

from __future__ import annotations

import datetime
import json
from collections import defaultdict
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from semistream.master_table import MasterTable

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_FLOATS = [0.0, -0.0, float("nan"), float("inf"), 1.5, -2.25]

KEY_FIELDS: dict[str, list[pa.Field]] = {
    "int64": [pa.field("k", pa.int64())],
    "int32": [pa.field("k", pa.int32())],
    "int8": [pa.field("k", pa.int8())],
    "boolean": [pa.field("k", pa.bool_())],
    "date": [pa.field("k", pa.date32())],
    "timestamp": [pa.field("k", pa.timestamp("us", "UTC"))],
    "timestamp without a zone": [pa.field("k", pa.timestamp("us"))],
    "decimal": [pa.field("k", pa.decimal128(20, 3))],
    "double": [pa.field("k", pa.float64())],
    "string": [pa.field("k", pa.string())],
    "binary": [pa.field("k", pa.binary())],
    "composite": [pa.field("k.1", pa.string()), pa.field("k.2", pa.int32()), pa.field("k.3", pa.date32())],
}


def rows(kind: str, count: int, seed: int, *, distinct: int | None = None) -> pa.Table:
    """Return rows in random order with unique keys, or with at most `distinct` keys; `seq` numbers them."""
    random = np.random.default_rng(seed)
    fields = KEY_FIELDS[kind]
    pool = _keys(fields, count * 3 if distinct is None else distinct, random)
    if distinct is None:
        keys = pool[:count]
    else:
        keys = [pool[place] for place in random.integers(0, len(pool), count)]
    numbers = random.integers(-(10**9), 10**9, len(keys)).tolist()
    moments = [_moment(number) for number in numbers]
    columns = {
        "text": pa.array([f"{number:+} " * (number % 7) or None for number in numbers], pa.string()),
        "seq": pa.array(random.permutation(len(keys)), pa.int64()),
        **{field.name: pa.array([key[place] for key in keys], field.type) for place, field in enumerate(fields)},
        "price": pa.array([Decimal(number) / 100 for number in numbers], pa.decimal128(12, 2)),
        "sold": pa.array(moments, pa.timestamp("us", "UTC")),
        "tags": pa.array([[str(number), None][: number % 3] for number in numbers], pa.list_(pa.string())),
        "box": pa.array(
            [
                {"at": moment, "w": number % 99} if number % 5 else None
                for moment, number in zip(moments, numbers, strict=True)
            ],
            pa.struct([("at", pa.timestamp("us", "UTC")), ("w", pa.int16())]),
        ),
        "seen": pa.array([[("first", moment)] for moment in moments], pa.map_(pa.string(), pa.timestamp("us", "UTC"))),
    }
    return pa.table(columns)


def as_frame(spark: SparkSession, data: pa.Table) -> DataFrame:
    """Return the rows as a DataFrame whose timestamps without a zone stay without one."""
    return spark.createDataFrame(data, from_arrow_schema(data.schema, prefer_timestamp_ntz=True))


def content(table: MasterTable) -> list[tuple[int, list[str]]]:
    """Return the codes of a table in its order, each with its rows as sorted texts; all pages are verified."""
    checked = table.verify()
    with table.open() as store:
        assert checked["rows"] == store.row_count
        if not store.page_count:
            return []
        pages = store.read(np.array([0]), np.array([store.page_count - 1]))
        texts = pages.take(np.arange(len(pages.codes)), sorted(store.schema.names)).to_pylist()
        by_code: dict[int, list[str]] = defaultdict(list)
        for code, text in zip(pages.codes.tolist(), texts, strict=True):
            by_code[code].append(json.dumps(text, default=str))
        return [(code, sorted(texts)) for code, texts in by_code.items()]


def names(table: MasterTable) -> set[str]:
    """Return the files of the current version."""
    return {file["name"] for file in table.info()["files"]}


def _keys(fields: list[pa.Field], count: int, random: np.random.Generator) -> list[tuple[Any, ...]]:
    keys = [tuple(_value(field.type, random) for field in fields) for _ in range(count)]
    # A text tells -0.0 from 0.0, which are one key, and NaN from nothing.
    return list({tuple(str(part).removeprefix("-0.0") or "0.0" for part in key): key for key in keys}.values())


def _value(data_type: pa.DataType, random: np.random.Generator) -> Any:
    types = pa.types
    if types.is_boolean(data_type):
        return bool(random.integers(2))
    if types.is_integer(data_type):
        limit = min(2 ** (data_type.bit_width - 1), 10**15)
        return int(random.integers(-limit, limit))
    if types.is_floating(data_type):
        return _FLOATS[random.integers(len(_FLOATS))] if random.integers(3) == 0 else float(random.normal())
    if types.is_decimal(data_type):
        return Decimal(int(random.integers(-(10**15), 10**15))) / 1000
    if types.is_date(data_type):
        return _EPOCH.date() + datetime.timedelta(days=int(random.integers(-100_000, 100_000)))
    if types.is_timestamp(data_type):
        moment = _moment(int(random.integers(-(10**9), 10**9)))
        return moment if data_type.tz else moment.replace(tzinfo=None)
    text = "".join(chr(code) for code in random.choice([32, 65, 97, 228, 8364, 128512], int(random.integers(12))))
    return text.encode() if types.is_binary(data_type) else text


def _moment(seconds: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(seconds=seconds, microseconds=seconds % 999_983)
