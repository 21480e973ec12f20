"""Rows in numbered slots, column by column: the payload of waiting and of cached tuples."""

from __future__ import annotations

import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.value_widths import fixed_width, is_bytes
from semistream.engine.bytes_column import BytesColumn
from semistream.engine.fixed_column import FixedColumn, Records
from semistream.engine.segmented_columns import SegmentedColumns


class SlotRows:
    """Keeps a row of any Arrow schema for each slot.

    Columns of fixed width take exactly that; strings and bytes share `variable_bytes` with all other columns (lists,
    structs and so on). Different threads may put, take and drop different slots, but one at a time.
    """

    def __init__(self, schema: pa.Schema, slots: int, variable_bytes: int) -> None:
        self.schema = schema
        kinds = [_kind(field.type) for field in schema]
        shares = kinds.count("bytes") + (1 if "other" in kinds else 0)
        share_bytes = variable_bytes // max(1, shares)
        fixed = [index for index, kind in enumerate(kinds) if kind == "fixed"]
        self._records = Records([schema.field(index).type for index in fixed], slots)
        self._columns: dict[int, FixedColumn | BytesColumn] = dict(zip(fixed, self._records.columns, strict=True))
        for index, kind in enumerate(kinds):
            if kind == "bytes":
                self._columns[index] = BytesColumn(schema.field(index).type, slots, share_bytes)
        self._other_at = [index for index, kind in enumerate(kinds) if kind == "other"]
        self._other = SegmentedColumns(slots, share_bytes) if self._other_at else None
        self._bytes = [column for column in self._columns.values() if isinstance(column, BytesColumn)]

    @staticmethod
    def slot_bytes(schema: pa.Schema) -> int:
        """Return what a slot takes, without the bytes of variable columns."""
        types = [field.type for field in schema]
        fixed = [data_type for data_type in types if _kind(data_type) == "fixed"]
        return Records.record_bytes(fixed) + BytesColumn.SLOT_BYTES * (len(types) - len(fixed))

    @property
    def is_variable(self) -> bool:
        """Whether rows take bytes beyond their slots."""
        return bool(self._bytes) or self._other is not None

    def column(self, index: int) -> FixedColumn | BytesColumn | None:
        """Return a column by its number; None if its type is nested."""
        return self._columns.get(index)

    def has_room(self, extra_bytes: int) -> bool:
        """Say whether rows of this size in variable columns fit."""
        if any(not column.has_room(extra_bytes) for column in self._bytes):
            return False
        return self._other is None or self._other.has_room(extra_bytes)

    def put(self, slots: Int64Array, batch: pa.RecordBatch, rows: Int64Array) -> None:
        """Let slots hold some rows of a batch instead of what they held."""
        for index, column in self._columns.items():
            column.put(slots, batch.column(index), rows)
        if self._other is not None:
            self._other.put(slots, batch.select(self._other_at).take(pa.array(rows)))

    def take(self, slots: Int64Array) -> pa.RecordBatch:
        """Return the rows of slots, at least one, in the order given."""
        taken: dict[int, pa.Array] = {index: column.take(slots) for index, column in self._columns.items()}
        if self._other is not None:
            taken.update(zip(self._other_at, self._other.take(slots).columns, strict=True))
        return pa.RecordBatch.from_arrays([taken[index] for index in range(len(self.schema))], schema=self.schema)

    def drop(self, slots: Int64Array) -> None:
        """Let slots hold nothing."""
        for column in self._bytes:
            column.drop(slots)
        if self._other is not None:
            self._other.drop(slots)

    def renumber(self, kept: Int64Array) -> None:
        """Keep only these slots, numbered in this order; the others must have been dropped."""
        self._records.renumber(kept)
        for column in self._bytes:
            column.renumber(kept)
        if self._other is not None:
            self._other.renumber(kept)

    def _check(self) -> None:
        """Assert every invariant, slowly."""
        for column in self._bytes:
            column._check()
        if self._other is not None:
            self._other._check()


def _kind(data_type: pa.DataType) -> str:
    if fixed_width(data_type) is not None:
        return "fixed"
    return "bytes" if is_bytes(data_type) else "other"
