"""The rows of stream tuples that wait."""

from __future__ import annotations

from threading import Lock

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.engine.slot_rows import SlotRows


class StreamRows:
    """Keeps the rows of waiting stream tuples in slots that are reused, and remembers where each stood in the stream.

    One thread may put rows in while another takes them out.
    """

    def __init__(self, schema: pa.Schema, slots: int, variable_bytes: int) -> None:
        self._rows = SlotRows(schema, slots, variable_bytes)
        self._positions = np.zeros(slots, dtype=np.int64)
        self._free = np.arange(slots - 1, -1, -1, dtype=np.int64)
        self._free_count = slots
        self._lock = Lock()

    @staticmethod
    def slot_bytes(schema: pa.Schema) -> int:
        """Return what a slot takes, without the bytes of variable columns."""
        return 16 + SlotRows.slot_bytes(schema)

    @property
    def free_slots(self) -> int:
        """How many more rows may enter; none while the columns without a fixed width take their share."""
        if self._rows.is_variable and self._free_count < len(self._free):
            with self._lock:
                return self._free_count if self._rows.has_room(0) else 0
        return self._free_count

    def positions(self, slots: Int64Array) -> Int64Array:
        """Return where the rows of slots stood in the stream."""
        return self._positions[slots]

    def put(self, batch: pa.RecordBatch, rows: Int64Array, first_position: int) -> Int64Array:
        """Keep some rows of a batch that begins at a position of the stream, and return their slots."""
        with self._lock:
            self._free_count -= len(rows)
            slots = self._free[self._free_count : self._free_count + len(rows)].copy()
            self._positions[slots] = rows + first_position
            self._rows.put(slots, batch, rows)
        return slots

    def take(self, slots: Int64Array) -> pa.RecordBatch:
        """Return the rows of slots, at least one, in the order given."""
        with self._lock:
            return self._rows.take(slots)

    def free(self, slots: Int64Array) -> None:
        """Forget the rows of slots."""
        with self._lock:
            self._rows.drop(slots)
            self._free[self._free_count : self._free_count + len(slots)] = slots
            self._free_count += len(slots)

    def _check(self) -> None:
        """Assert every invariant, slowly."""
        assert len(np.unique(self._free[: self._free_count])) == self._free_count
        self._rows._check()
