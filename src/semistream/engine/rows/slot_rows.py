"""Rows in numbered slots, column by column: the payload of waiting and of cached tuples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.value_widths import fixed_width, is_bytes
from semistream.engine.rows.bytes_column import BytesColumn, BytesHeap
from semistream.engine.rows.fixed_column import FixedColumn, Records
from semistream.engine.rows.row_sizes import RowSizes
from semistream.engine.rows.segmented_columns import SegmentedColumns

_CLEANING = 1.25
"""To clean nested columns takes a quarter of their memory besides."""


class SlotRows:
    """Keeps a row of any Arrow schema for each slot.

    Columns of fixed width take exactly that. All strings and bytes share one heap, and all other columns (lists,
    structs and so on) one log; where there are both, each has half of `variable_bytes`. Who puts rows in must see to it
    that they fit. Different threads may put, take and drop different slots, but one at a time.
    """

    def __init__(self, schema: pa.Schema, slots: int, variable_bytes: int) -> None:
        self.schema = schema
        self.sizes = RowSizes(schema)
        kinds = [_kind(field.type) for field in schema]
        strings = kinds.count("bytes")
        share_bytes = variable_bytes // 2 if strings and "other" in kinds else variable_bytes
        fixed = [index for index, kind in enumerate(kinds) if kind == "fixed"]
        self._records = Records([schema.field(index).type for index in fixed], slots)
        self._columns: dict[int, FixedColumn | BytesColumn] = dict(zip(fixed, self._records.columns, strict=True))
        self._heap = BytesHeap(slots * strings, share_bytes) if strings else None
        self._bytes: list[BytesColumn] = []
        for index, kind in enumerate(kinds):
            if kind == "bytes":
                assert self._heap is not None
                column = BytesColumn(schema.field(index).type, slots, self._heap, slots * len(self._bytes))
                self._columns[index] = column
                self._bytes.append(column)
        self._other_at = [index for index, kind in enumerate(kinds) if kind == "other"]
        self._other = SegmentedColumns(slots, int(share_bytes / _CLEANING)) if self._other_at else None

    @staticmethod
    def slot_bytes(schema: pa.Schema) -> int:
        """Return what a slot takes, without the bytes of variable columns."""
        types = [field.type for field in schema]
        fixed = [data_type for data_type in types if _kind(data_type) == "fixed"]
        return Records.record_bytes(fixed) + BytesHeap.VALUE_BYTES * (len(types) - len(fixed))

    @staticmethod
    def bytes_for(schema: pa.Schema, row_bytes: int) -> int:
        """Return how many `variable_bytes` always have room for a row of this size."""
        kinds = {_kind(field.type) for field in schema} - {"fixed"}
        return int(row_bytes * len(kinds) * max(_CLEANING, BytesHeap.GARBAGE)) + 64

    @property
    def is_variable(self) -> bool:
        """Whether rows take bytes beyond their slots."""
        return self.sizes.is_variable

    def column(self, index: int) -> FixedColumn | BytesColumn | None:
        """Return a column by its number; None if its type is nested."""
        return self._columns.get(index)

    @property
    def limit_bytes(self) -> int:
        """What all rows may take in variable columns, whichever of these have it."""
        limits = [self._heap.limit_bytes] if self._heap is not None else []
        return min([*limits, *([self._other.limit_bytes] if self._other is not None else [])], default=0)

    def free_bytes(self, wanted_bytes: int = 0) -> int:
        """Return what more rows may take in variable columns; only if fewer than wanted, after some cleaning."""
        free = [self._heap.free_bytes] if self._heap is not None else []
        return min([*free, *([self._other.free_bytes(wanted_bytes)] if self._other is not None else [])], default=0)

    def variable_bytes(self, slots: Int64Array) -> Int64Array:
        """Return what the row of each slot takes in variable columns."""
        sizes = np.zeros(len(slots), dtype=np.int64)
        for column in self._bytes:
            column.add_lengths(slots, sizes)
        if self._other is not None:
            self._other.add_sizes(slots, sizes)
        return sizes

    def put(self, slots: Int64Array, batch: pa.RecordBatch, rows: Int64Array) -> None:
        """Let slots hold some rows of a batch instead of what they held."""
        for strings in self._bytes:
            strings.drop(slots)
        for index, column in self._columns.items():
            column.put(slots, batch.column(index), rows)
        if self._other is not None:
            self._other.put(slots, batch.select(self._other_at).take(pa.array(rows)))

    def take(self, slots: Int64Array, columns: Sequence[int] | None = None) -> pa.RecordBatch:
        """Return the rows of slots, at least one, in the order given, with all or only some of the columns."""
        wanted = range(len(self.schema)) if columns is None else columns
        taken: dict[int, pa.Array] = {
            index: column.take(slots) for index, column in self._columns.items() if index in wanted
        }
        if self._other is not None and any(index in wanted for index in self._other_at):
            taken.update(zip(self._other_at, self._other.take(slots).columns, strict=True))
        schema = self.schema if columns is None else pa.schema([self.schema.field(index) for index in columns])
        return pa.RecordBatch.from_arrays([taken[index] for index in wanted], schema=schema)

    def drop(self, slots: Int64Array) -> None:
        """Let slots hold nothing."""
        for column in self._bytes:
            column.drop(slots)
        if self._other is not None:
            self._other.drop(slots)

    def move(self, slots: Int64Array, targets: Int64Array) -> None:
        """Let slots that hold nothing hold the rows of others, which hold nothing afterwards."""
        self._records.move(slots, targets)
        for column in self._bytes:
            column.move(slots, targets)
        if self._other is not None:
            self._other.move(slots, targets)

    def _check(self) -> None:
        """Assert every invariant, slowly."""
        if self._heap is not None:
            self._heap._check()
        if self._other is not None:
            self._other._check()


def _kind(data_type: pa.DataType) -> str:
    if fixed_width(data_type) is not None:
        return "fixed"
    return "bytes" if is_bytes(data_type) else "other"
