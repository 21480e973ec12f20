"""Hypothesis strategies for master tables, streams and the ways they arrive; the one module that needs hypothesis."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from semistream.core.extras import missing

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import DrawFn, SearchStrategy
except ModuleNotFoundError:
    raise missing("hypothesis", extra="testing", purpose="semistream.testing.strategies") from None

_UTC = dt.UTC


@dataclass(frozen=True)
class ColumnKind:
    """A type of column with values that it may have; a stream may use another type of the same kind."""

    name: str
    type: pa.DataType
    values: SearchStrategy[Any]
    stream_types: tuple[pa.DataType, ...] = ()
    """Types that a stream key may have instead, where every value fits."""


def _integers(bits: int) -> ColumnKind:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    values = st.one_of(st.integers(-20, 20), st.sampled_from([low, high, low + 1, high - 1]), st.integers(low, high))
    wider = tuple(pa.type_for_alias(f"int{wide}") for wide in (8, 16, 32, 64) if wide > bits)
    return ColumnKind(f"int{bits}", pa.type_for_alias(f"int{bits}"), values, wider)


_TEXTS = st.one_of(
    st.sampled_from(["", " ", "a", "A", "a ", "é", "é", "ß", "ss", "漢字", "\x00", "a\x00", "x" * 40]),
    st.text(max_size=9).filter(lambda text: text.isprintable()),
)
_BYTES = st.one_of(st.sampled_from([b"", b"\x00", b"\x00\x00", b"\xff" * 8, b"\xff" * 9]), st.binary(max_size=12))
_FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e308, 5e-324, 1.5]), st.floats(width=64)
)
_DATES = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))
_TIMES = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))
_DECIMALS = st.integers(-99999, 99999).map(lambda units: Decimal(units) / 100)

KEY_KINDS: tuple[ColumnKind, ...] = (
    *(_integers(bits) for bits in (8, 16, 32, 64)),
    ColumnKind("uint32", pa.uint32(), st.integers(0, 2**32 - 1), (pa.int64(), pa.uint64())),
    ColumnKind("string", pa.string(), _TEXTS, (pa.large_string(), pa.dictionary(pa.int32(), pa.string()))),
    ColumnKind("binary", pa.binary(), _BYTES, (pa.large_binary(),)),
    ColumnKind("fixed binary", pa.binary(3), st.binary(min_size=3, max_size=3)),
    ColumnKind("bool", pa.bool_(), st.booleans()),
    ColumnKind("date", pa.date32(), _DATES, (pa.date64(),)),
    ColumnKind("timestamp", pa.timestamp("us"), _TIMES),
    ColumnKind("timestamp in a zone", pa.timestamp("us", "UTC"), _TIMES.map(lambda time: time.replace(tzinfo=_UTC))),
    ColumnKind("decimal", pa.decimal128(9, 2), _DECIMALS, (pa.decimal128(20, 4), pa.decimal128(38, 2))),
    ColumnKind("float", pa.float64(), _FLOATS),
)
"""Every kind of column that may be a key."""

PAYLOAD_KINDS: tuple[ColumnKind, ...] = (
    ColumnKind("int64", pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    ColumnKind("string", pa.string(), _TEXTS),
    ColumnKind("decimal", pa.decimal128(9, 2), _DECIMALS),
    ColumnKind("timestamp", pa.timestamp("us"), _TIMES),
    ColumnKind("float", pa.float64(), _FLOATS),
    ColumnKind("bool", pa.bool_(), st.booleans()),
    ColumnKind("list", pa.list_(pa.string()), st.lists(st.one_of(st.none(), _TEXTS), max_size=3)),
    ColumnKind(
        "struct",
        pa.struct([("n", pa.int32()), ("tags", pa.list_(pa.int8()))]),
        st.fixed_dictionaries({"n": st.integers(-9, 9), "tags": st.lists(st.integers(-9, 9), max_size=2)}),
    ),
    ColumnKind("null", pa.null(), st.none()),
)
"""Kinds of columns that are only carried along."""


@dataclass
class Arrival:
    """Stream rows cut into batches, with None where the stream is silent; `feed` gives them anew each time."""

    batches: list[pa.RecordBatch | None]
    schema: pa.Schema
    as_generator: bool = False

    @property
    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches([batch for batch in self.batches if batch is not None], schema=self.schema)

    def feed(self) -> Iterable[pa.RecordBatch | None]:
        """Return what a join takes: the list, or a generator of it."""
        return _generated(self.batches) if self.as_generator else self.batches


@dataclass
class JoinCase:
    """A master table, a stream, and how the two are to be joined."""

    master: pa.Table
    key: list[str]
    stream: Arrival
    on: dict[str, str]
    rows_per_page: int
    options: dict[str, Any] = field(default_factory=dict)
    """`columns`, `replace` and `suffix`."""
    unique: bool = True


def _generated(batches: Sequence[pa.RecordBatch | None]) -> Iterator[pa.RecordBatch | None]:
    yield from batches


def memory_sizes() -> SearchStrategy[int]:
    """Return budgets from next to nothing to plenty; the smallest may be below what a join needs."""
    return st.sampled_from([24_000, 40_000, 80_000, 300_000, 2_000_000])


@st.composite
def arrivals(draw: DrawFn, rows: pa.Table) -> Arrival:
    """Cut rows into batches: any sizes, empty ones, one row at a time; None for silence; as a list or a generator."""
    whole = rows.combine_chunks().to_batches()
    batch = whole[0] if whole else pa.RecordBatch.from_pylist([], schema=rows.schema)
    manner = draw(st.sampled_from(["whole", "one at a time", "any"]))
    if manner == "whole":
        sizes = [batch.num_rows]
    elif manner == "one at a time":
        sizes = [1] * batch.num_rows
    else:
        sizes = draw(st.lists(st.integers(0, 40), min_size=1, max_size=12))
    silences = draw(st.sets(st.integers(0, 12), max_size=4))
    batches: list[pa.RecordBatch | None] = []
    start = number = 0
    while start < batch.num_rows or number < min(len(sizes), 12):
        if number in silences:
            batches.append(None)
        size = sizes[number % len(sizes)]
        if number >= len(sizes):
            size = max(1, size)
        batches.append(batch.slice(start, size))
        start, number = start + size, number + 1
    return Arrival(batches, rows.schema, draw(st.booleans()))


@st.composite
def join_cases(
    draw: DrawFn,
    *,
    unique: bool = True,
    max_keys: int = 24,
    max_rows: int = 240,
    kinds: Sequence[ColumnKind] = KEY_KINDS,
) -> JoinCase:
    """Draw tables that share some keys, with nulls in the stream's key, and options that fit their columns."""
    parts = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=2))
    pool = draw(_distinct_keys(parts, max_keys))
    held = pool[: draw(st.integers(0, len(pool)))]
    copies = [1] * len(held) if unique else [draw(st.integers(1, 4)) for _ in held]
    master_keys = [key for key, count in zip(held, copies, strict=True) for _ in range(count)]
    names = [f"k{index}" for index in range(len(parts))]
    master = _with_payloads(draw, names, [part.type for part in parts], master_keys, "m")

    pattern = draw(st.lists(st.integers(-2, len(pool) - 1), min_size=0, max_size=40))
    repeats = draw(st.integers(1, max(1, max_rows // max(1, len(pattern)))))
    wanted = [_stream_key(pool, index) for index in pattern * repeats]
    types = [draw(st.sampled_from((part.type, *part.stream_types))) for part in parts]
    stream_names = names if draw(st.booleans()) else [f"s{name}" for name in names]
    stream = _with_payloads(draw, stream_names, types, wanted, "s")
    return JoinCase(
        master=master,
        key=names,
        stream=draw(arrivals(stream)),
        on=dict(zip(stream_names, names, strict=True)),
        rows_per_page=draw(st.sampled_from([1, 3, 8])),
        options=draw(_options(stream, master, names, stream_names)),
        unique=unique,
    )


def _stream_key(pool: Sequence[tuple[Any, ...]], index: int) -> tuple[Any, ...]:
    """Return a key of the pool; below 0 one with a null in its last or in every part."""
    if index >= 0:
        return pool[index]
    return (*pool[0][:-1], None) if index == -1 else (None,) * len(pool[0])


@st.composite
def _distinct_keys(draw: DrawFn, parts: Sequence[ColumnKind], max_count: int) -> list[tuple[Any, ...]]:
    keys = st.tuples(*[part.values for part in parts])
    return draw(st.lists(keys, min_size=1, max_size=max_count, unique_by=_identity))


def _identity(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple("not a number" if isinstance(part, float) and part != part else part for part in key)


def _with_payloads(
    draw: DrawFn, names: Sequence[str], types: Sequence[pa.DataType], keys: Sequence[tuple[Any, ...]], prefix: str
) -> pa.Table:
    """Return key columns, a column that numbers the rows, and a few more with nulls."""
    columns: dict[str, pa.Array] = {f"{prefix}_row": pa.array(range(len(keys)), pa.int64())}
    for index, (name, kind) in enumerate(zip(names, types, strict=True)):
        columns[name] = _array([key[index] for key in keys], kind)
    for index, kind in enumerate(draw(st.lists(st.sampled_from(PAYLOAD_KINDS), max_size=2))):
        values = draw(st.lists(st.one_of(st.none(), kind.values), min_size=1, max_size=4))
        columns[f"{prefix}{index}"] = pa.array([values[row % len(values)] for row in range(len(keys))], kind.type)
    if draw(st.booleans()):
        columns["both"] = pa.array([f"{prefix} {row % 3}" for row in range(len(keys))], pa.string())
    return pa.table(columns)


def _array(values: list[Any], data_type: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(data_type):
        return pa.array(values, data_type.value_type).dictionary_encode()
    return pa.array(values, data_type)


@st.composite
def _options(
    draw: DrawFn, stream: pa.Table, master: pa.Table, key: Sequence[str], stream_key: Sequence[str]
) -> dict[str, Any]:
    options: dict[str, Any] = {}
    payloads = [name for name in master.schema.names if name not in key]
    if draw(st.booleans()):
        options["columns"] = draw(st.lists(st.sampled_from(payloads), unique=True))
    if draw(st.booleans()):
        options["replace"] = {stream_key[0]: "m_row"}
        if "columns" in options:
            options["columns"] = [name for name in options["columns"] if name != "m_row"]
    if "both" in stream.schema.names and "both" in options.get("columns", payloads):
        options["suffix"] = "_of_master"
    return options
