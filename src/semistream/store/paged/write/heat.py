"""How often the rows of a table are asked for, and the classes that the hottest of them are put into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semistream.core.arrays import Float64Array, Int64Array, UInt8Array
from semistream.core.errors import InvalidSettingError, UnknownColumnError
from semistream.store.paged.format.heat_map import MAX_CLASSES, HeatMap
from semistream.store.paged.format.row_layout import RowLayout, stored_column
from semistream.store.paged.write.coding import delete_schema
from semistream.store.paged.write.packing import codes_of
from semistream.store.paged.write.row_sources import open_source

COUNT_COLUMN = "count"
_SMALLEST_CLASS = 256
"""Keys; fewer would hardly fill a page group."""

Heat: TypeAlias = Callable[[pa.RecordBatch], Float64Array]
"""Tells the heat of coded rows: any number, the greatest for the hottest."""


@dataclass(frozen=True)
class Use:
    """What tells how often the rows of a table are asked for."""

    about: str
    """Where that is from, in words."""
    heat: Callable[[RowLayout], Heat]


def use_in_column(name: str) -> Use:
    """Return the use that a column of the table tells."""
    return Use(f"column {name}", lambda layout: heat_by_column(layout, name))


def use_of_keys(data: Any) -> Use:
    """Return the use that counts of keys tell: rows with the key columns and a column "count"."""
    return Use("counts of keys", lambda layout: heat_by_counted_keys(layout, data))


def use_of_codes(codes: Int64Array, counts: Float64Array) -> Use:
    """Return the use that counts of key codes tell, as caches save them."""
    return Use("saved statistics", lambda _: heat_by_codes(codes, counts))


def heat_by_column(layout: RowLayout, name: str) -> Heat:
    """Return what takes the values of a column of the table for the heat of its rows; those without one are cold."""
    if name not in layout.schema.names:
        raise UnknownColumnError(f"The table has no column {name!r}: it has {', '.join(layout.schema.names)}.")
    types, data_type = pa.types, layout.schema.field(name).type
    if not (types.is_integer(data_type) or types.is_floating(data_type) or types.is_boolean(data_type)) and not (
        types.is_decimal(data_type) or (types.is_temporal(data_type) and not types.is_interval(data_type))
    ):
        raise InvalidSettingError(
            f"The column {name!r} is {data_type}, which says nothing about use: name one of numbers, dates or times."
        )
    position = layout.order.index(name) + 1

    def heat(rows: pa.RecordBatch) -> Float64Array:
        values = rows.column(position)
        if types.is_temporal(data_type):
            values = values.view(pa.int64() if data_type.bit_width == 64 else pa.int32())
        elif types.is_boolean(data_type):
            values = values.cast(pa.int8())
        numbers: Float64Array = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return np.where(np.isnan(numbers), -np.inf, numbers)

    return heat


def heat_by_codes(codes: Int64Array, counts: Float64Array) -> Heat:
    """Return what takes counts of key codes for the heat of their rows; counts of one code are added up."""
    known, of_each = np.unique(codes, return_inverse=True)
    sums = np.append(np.bincount(of_each, weights=counts, minlength=len(known)), 0.0)

    def heat(rows: pa.RecordBatch) -> Float64Array:
        asked = codes_of(rows)
        if not len(known):
            return np.zeros(len(asked))
        places = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        return sums[np.where(known[places] == asked, places, len(known))]

    return heat


def heat_by_counted_keys(layout: RowLayout, data: Any) -> Heat:
    """Return what takes the column "count" beside some keys for the heat of their rows."""
    source = open_source(data)
    if COUNT_COLUMN not in source.schema.names or COUNT_COLUMN in layout.key:
        raise InvalidSettingError(
            f"Counts of keys need the key columns and a column {COUNT_COLUMN!r}, but they have "
            f"{', '.join(source.schema.names)}: rename the columns."
        )
    fields = list(delete_schema(layout, source.schema))[1:]
    codes, counts = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    for batch in source.batches:
        keys = [stored_column(batch.column(name), field.type) for name, field in zip(layout.key, fields, strict=True)]
        encoded = layout.codec.encode(keys)
        usable = np.ones(len(encoded.codes), dtype=np.bool_) if encoded.usable is None else encoded.usable
        codes.append(encoded.codes[usable])
        of_keys = pc.fill_null(batch.column(COUNT_COLUMN).cast(pa.float64()), 0.0)
        counts.append(of_keys.to_numpy(zero_copy_only=False)[usable])
    return heat_by_codes(np.concatenate(codes), np.concatenate(counts))


class HottestKeys:
    """The hottest of the keys that it is told, at most so many; the coldest of all keys count for nothing."""

    def __init__(self, max_keys: int) -> None:
        self._max_keys = max_keys
        self._codes: Int64Array = np.empty(0, dtype=np.int64)
        self._values: Float64Array = np.empty(0)
        self._new_codes: list[Int64Array] = []
        self._new_values: list[Float64Array] = []
        self._new_count = 0
        self._lowest = np.inf

    def add(self, codes: Int64Array, values: Float64Array) -> None:
        """Take sorted codes, all rows of a code at once, and the heat of each row; that of a key is its greatest."""
        if not len(codes):
            return
        starts = np.append(0, 1 + np.flatnonzero(codes[1:] != codes[:-1]))
        codes, values = codes[starts], np.maximum.reduceat(values, starts)
        self._lowest = min(self._lowest, float(values.min()))
        self._new_codes.append(codes)
        self._new_values.append(values)
        self._new_count += len(codes)
        if self._new_count > max(self._max_keys, 1 << 16):
            self._cut()

    def by_heat(self) -> Int64Array:
        """Return the codes, the hottest first."""
        self._cut()
        hot = self._values > self._lowest
        order = np.argsort(-self._values[hot], kind="stable")
        return self._codes[hot][order]

    def _cut(self) -> None:
        codes = np.concatenate([self._codes, *self._new_codes])
        values = np.concatenate([self._values, *self._new_values])
        self._new_codes, self._new_values, self._new_count = [], [], 0
        if len(codes) > self._max_keys:
            kept = np.sort(np.argpartition(-values, self._max_keys - 1)[: self._max_keys])
            codes, values = codes[kept], values[kept]
        self._codes, self._values = codes, values


def heat_map_of(hottest: Int64Array, row_count: int) -> HeatMap:
    """Return the map of the hottest keys: each class has twice as many keys as the one before, but for the first ones.

    Under a power law of exponent 1, the keys of a class then differ in heat by a factor of two at most.
    """
    ends = [len(hottest)]
    while len(ends) < MAX_CLASSES - 1 and ends[-1] // 2 >= _SMALLEST_CLASS:
        ends.append(ends[-1] // 2)
    ranks = np.arange(len(hottest))
    classes: UInt8Array = np.searchsorted(np.array(ends[::-1]), ranks, side="right").astype(np.uint8)
    return HeatMap.of(hottest, classes, len(ends) + 1, row_count)
