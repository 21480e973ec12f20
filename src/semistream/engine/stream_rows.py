"""The rows of stream tuples that wait."""

from __future__ import annotations

from threading import Lock

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.engine.fixed_column import FixedColumn, fixed_width
from semistream.engine.variable_rows import VariableRows


class StreamRows:
    """Keeps the rows of waiting stream tuples in numbered slots, column by column.

    Columns of a fixed width are copied into slots that are reused; the others are kept in `variable_bytes` as Arrow
    batches. One thread may put rows in while another takes them out.
    """

    def __init__(self, schema: pa.Schema, slots: int, variable_bytes: int) -> None:
        self._schema = schema
        self._fixed = {i: FixedColumn(f.type, slots) for i, f in enumerate(schema) if fixed_width(f.type) is not None}
        self._variable_at = [i for i in range(len(schema)) if i not in self._fixed]
        self._variable = VariableRows(variable_bytes) if self._variable_at else None
        self._positions = np.zeros(slots, dtype=np.int64)
        self._free = np.arange(slots - 1, -1, -1, dtype=np.int64)
        self._free_count = slots
        self._lock = Lock()

    @staticmethod
    def slot_bytes(schema: pa.Schema) -> int:
        """Return what a slot takes, without the columns that have no fixed width."""
        return 16 + sum(fixed_width(field.type) or 0 for field in schema)

    @property
    def free_slots(self) -> int:
        """How many more rows may enter; none while the columns without a fixed width take their share."""
        if self._variable is not None and self._free_count < len(self._free):
            with self._lock:
                if self._variable.is_full:
                    return 0
        return self._free_count

    @property
    def is_empty(self) -> bool:
        """Whether no row is kept."""
        return self._free_count == len(self._free)

    def positions(self, slots: Int64Array) -> Int64Array:
        """Return where the rows of slots stood in the stream."""
        return self._positions[slots]

    def put(self, batch: pa.RecordBatch, rows: Int64Array, first_position: int) -> Int64Array:
        """Keep some rows of a batch that begins at a position of the stream, and return their slots."""
        with self._lock:
            self._free_count -= len(rows)
            slots = self._free[self._free_count : self._free_count + len(rows)].copy()
            if self._variable is not None:
                columns = batch.select(self._variable_at)
                self._variable.add(rows + first_position, columns.take(pa.array(rows)))
        self._positions[slots] = rows + first_position
        for index, column in self._fixed.items():
            column.put(slots, batch.column(index), rows)
        return slots

    def take(self, slots: Int64Array) -> pa.RecordBatch:
        """Return the rows of slots, at least one, in the order given."""
        columns: dict[int, pa.Array] = {index: column.take(slots) for index, column in self._fixed.items()}
        if self._variable is not None:
            with self._lock:
                variable = self._variable.take(self._positions[slots])
            columns.update(zip(self._variable_at, variable.columns, strict=True))
        return pa.RecordBatch.from_arrays([columns[i] for i in range(len(self._schema))], schema=self._schema)

    def free(self, slots: Int64Array) -> None:
        """Forget the rows of slots."""
        with self._lock:
            if self._variable is not None:
                self._variable.release(self._positions[slots])
            self._free[self._free_count : self._free_count + len(slots)] = slots
            self._free_count += len(slots)

    def _check(self) -> None:
        """Assert every invariant, slowly."""
        assert len(np.unique(self._free[: self._free_count])) == self._free_count
        if self._variable is not None:
            self._variable._check()
