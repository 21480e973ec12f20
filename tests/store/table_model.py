"""Random tables for tests of stores, and the rows of a store in a form that can be compared."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from semistream.store.contract import MasterStore

KEYS: dict[str, tuple[list[pa.Field], st.SearchStrategy[tuple[Any, ...]]]] = {
    "int64": ([pa.field("k", pa.int64())], st.tuples(st.integers(-(2**63), 2**63 - 1))),
    "int32": ([pa.field("k", pa.int32())], st.tuples(st.integers(-(2**31), 2**31 - 1))),
    "int16": ([pa.field("k", pa.int16())], st.tuples(st.integers(-300, 300))),
    "date": ([pa.field("k", pa.date32())], st.tuples(st.dates())),
    "timestamp": (
        [pa.field("k", pa.timestamp("us", "UTC"))],
        st.tuples(st.datetimes(timezones=st.just(datetime.UTC))),
    ),
    "string": ([pa.field("k", pa.string())], st.tuples(st.text(max_size=12))),
    "composite": (
        [pa.field("k", pa.string()), pa.field("k2", pa.int32())],
        st.tuples(st.sampled_from(["", "a", "b", "ab"]), st.integers(-50, 50)),
    ),
}

PAYLOADS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "text": (pa.string(), st.text(max_size=80)),
    "price": (pa.decimal128(12, 2), st.integers(-(10**9), 10**9).map(lambda cents: Decimal(cents) / 100)),
    "sold": (pa.timestamp("us"), st.datetimes()),
    "flag": (pa.bool_(), st.booleans()),
    "tags": (pa.list_(pa.string()), st.lists(st.none() | st.text(max_size=5), max_size=4)),
    "box": (
        pa.struct([("w", pa.int16()), ("names", pa.list_(pa.large_string()))]),
        st.fixed_dictionaries(
            {"w": st.integers(-9, 9), "names": st.none() | st.lists(st.text(max_size=3), max_size=2)}
        ),
    ),
    "pair": (pa.list_(pa.int64(), 2), st.lists(st.integers(0, 9), min_size=2, max_size=2)),
    "counts": (pa.map_(pa.string(), pa.int32()), st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=3)),
    "raw": (pa.binary(), st.binary(max_size=20)),
    "nothing": (pa.null(), st.none()),
}


@st.composite
def tables(draw: st.DrawFn, *, kinds: list[str] | None = None, unique: bool = True) -> tuple[pa.Table, list[str]]:
    """Draw a table of random columns and the names of its key columns."""
    key_fields, key_values = KEYS[draw(st.sampled_from(kinds or list(KEYS)))]
    names = draw(st.lists(st.sampled_from(list(PAYLOADS)), unique=True, max_size=5))
    keys = draw(st.lists(key_values, unique=unique, max_size=60))
    fields = [pa.field(name, PAYLOADS[name][0]) for name in names]
    values = [draw(st.lists(st.none() | PAYLOADS[name][1], min_size=len(keys), max_size=len(keys))) for name in names]
    columns = [
        *(pa.array(column, field.type) for column, field in zip(values, fields, strict=True)),
        *(pa.array([key[place] for key in keys], field.type) for place, field in enumerate(key_fields)),
    ]
    schema = pa.schema([*fields, *key_fields])
    return pa.Table.from_arrays(columns, schema=schema), [field.name for field in key_fields]


def all_rows(store: MasterStore) -> list[dict[str, Any]]:
    """Return all rows of a store in the order of their codes."""
    if not store.page_count:
        return []
    pages = store.read(np.array([0]), np.array([store.page_count - 1]))
    rows: list[dict[str, Any]] = pages.take(np.arange(len(pages.codes)), store.schema.names).to_pylist()
    return rows
