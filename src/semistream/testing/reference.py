"""An independent join in plain Python, to compare the real one with: dictionaries, no codes, no pages, no budget."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

Stream: TypeAlias = pa.Table | Iterable[pa.RecordBatch | None]


@dataclass(frozen=True)
class Joined:
    """The output of a join without its order: names and types of the columns, and how often each row is there."""

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    rows: Counter[tuple[Hashable, ...]]


def reference_join(
    stream: Stream,
    master: pa.Table,
    *,
    on: Mapping[str, str],
    how: str = "inner",
    columns: Sequence[str] | None = None,
    replace: Mapping[str, str] | None = None,
    suffix: str | None = None,
    schema: pa.Schema | None = None,
) -> Joined:
    """Join as `semistream.join` must: the arguments are the same, but `on` maps stream columns to the master's key.

    `schema` is the stream's; it must be given for a stream without a batch. Every master row of a key is a match. A
    null in a key matches nothing, NaN equals NaN, and -0.0 equals 0.0.
    """
    arrived = _as_table(stream, schema)
    replaced = dict(replace or {})
    with_master = how in ("inner", "left")
    if columns is None:
        columns = [name for name in master.schema.names if name not in {*on.values(), *replaced.values()}]
    names: list[str] = []
    types: list[pa.DataType] = []
    sources: list[tuple[bool, str]] = []
    for name in arrived.schema.names:
        from_master = with_master and name in replaced
        source = replaced[name] if from_master else name
        names.append(source)
        types.append(_plain((master if from_master else arrived).schema.field(source).type))
        sources.append((from_master, source))
    for name in columns if with_master else ():
        names.append(name + (suffix or "") if name in names else name)
        types.append(master.schema.field(name).type)
        sources.append((True, name))

    ours = {name: _values(arrived.column(name)) for name in arrived.schema.names}
    theirs = {name: _values(master.column(name)) for name in master.schema.names}
    matches: dict[Hashable, list[int]] = defaultdict(list)
    for number, key in enumerate(_keys(master, list(on.values()))):
        if key is not None:
            matches[key].append(number)
    rows: Counter[tuple[Hashable, ...]] = Counter()
    for position, key in enumerate(_keys(arrived, list(on))):
        partners: Sequence[int | None] = matches.get(key, []) if key is not None else []
        if how == "semi":
            partners = [None] if partners else []
        elif how == "anti":
            partners = [] if partners else [None]
        elif how == "left" and not partners:
            partners = [None]
        for row in partners:
            rows[tuple(_cell(source, position, row, ours, theirs) for source in sources)] += 1
    return Joined(tuple(names), tuple(types), rows)


def joined_rows(output: pa.Table | Iterable[pa.RecordBatch]) -> Joined:
    """Return what a join has put out in the form that `reference_join` returns."""
    table = output if isinstance(output, pa.Table) else pa.Table.from_batches(list(output))
    values = [_values(column) for column in table.columns]
    rows: Counter[tuple[Hashable, ...]] = Counter(zip(*values, strict=True))
    return Joined(tuple(table.schema.names), tuple(table.schema.types), rows)


def assert_same_rows(actual: Joined, expected: Joined) -> None:
    """Assert that columns and rows are the same whatever their order, and say which rows are lost or too many."""
    assert actual.names == expected.names, f"columns {actual.names}, expected {expected.names}"
    assert actual.types == expected.types, f"types {actual.types}, expected {expected.types}"
    if actual.rows != expected.rows:
        lost, surplus = expected.rows - actual.rows, actual.rows - expected.rows
        raise AssertionError(
            f"{lost.total()} rows are lost, e.g. {list(lost)[:3]}; "
            f"{surplus.total()} are too many, e.g. {list(surplus)[:3]}; {expected.rows.total()} were expected."
        )


def _as_table(stream: Stream, schema: pa.Schema | None) -> pa.Table:
    if isinstance(stream, pa.Table):
        return stream
    return pa.Table.from_batches([batch for batch in stream if batch is not None], schema=schema)


def _plain(data_type: pa.DataType) -> pa.DataType:
    """Return the type that a column comes out with: a dictionary's is that of its values."""
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type


def _cell(
    source: tuple[bool, str],
    position: int,
    row: int | None,
    ours: Mapping[str, list[Hashable]],
    theirs: Mapping[str, list[Hashable]],
) -> Hashable:
    from_master, name = source
    if not from_master:
        return ours[name][position]
    return None if row is None else theirs[name][row]


def _values(column: pa.ChunkedArray) -> list[Hashable]:
    """Return values that are equal only if they are the same to the bit: -0.0 is not 0.0 here, and NaN is itself."""
    return [_frozen(value) for value in column.to_pylist()]


def _frozen(value: Any) -> Hashable:
    if isinstance(value, float):
        return ("float", repr(value))
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, dict):
        return tuple((name, _frozen(item)) for name, item in value.items())
    if isinstance(value, list):
        return ("list", *(_frozen(item) for item in value))
    frozen: Hashable = value
    return frozen


def _keys(table: pa.Table, names: Sequence[str]) -> list[tuple[Hashable, ...] | None]:
    parts = [[_comparable(value) for value in table.column(name).to_pylist()] for name in names]
    return [None if None in key else key for key in zip(*parts, strict=True)]


def _comparable(value: Any) -> Hashable:
    """Return a value that equals another if the keys are equal; Python's own values do so, but for NaN."""
    if isinstance(value, float) and value != value:
        return "not a number"
    comparable: Hashable = value
    return comparable
