"""The rows of stream tuples that wait."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.engine.rows.row_sizes import RowSizes
from semistream.engine.rows.slot_rows import SlotRows


class StreamRows:
    """Keeps the rows of waiting stream tuples in slots that are reused, and remembers where each stood in the stream.

    One thread may put rows in while another takes them out. Who puts rows in must ask before for slots and bytes.
    """

    def __init__(self, schema: pa.Schema, slots: int, variable_bytes: int) -> None:
        self._rows = SlotRows(schema, slots, variable_bytes)
        self._positions = np.zeros(slots, dtype=np.int64)
        self._free = np.arange(slots - 1, -1, -1, dtype=np.int64)
        self._free_count = slots
        self._lock = Lock()
        self._lacks_bytes = False
        """Whether a row could not enter when last tried, because the rows that are held take its bytes."""

    @staticmethod
    def slot_bytes(schema: pa.Schema) -> int:
        """Return what a slot takes, without the bytes of variable columns."""
        return 16 + SlotRows.slot_bytes(schema)

    @property
    def schema(self) -> pa.Schema:
        """The columns of a row."""
        return self._rows.schema

    @property
    def sizes(self) -> RowSizes:
        """What rows take."""
        return self._rows.sizes

    @property
    def free_slots(self) -> int:
        """How many more rows may enter, as far as slots are concerned."""
        return self._free_count

    def free_bytes(self, wanted_bytes: int) -> int:
        """Return what more rows may take in columns without a fixed width; exact if fewer than wanted."""
        with self._lock:
            return self._rows.free_bytes(wanted_bytes)

    @property
    def is_full(self) -> bool:
        """Whether no row may enter for want of slots or bytes."""
        return self._lacks_bytes or not self._free_count

    def note_lack(self, *, lacks_bytes: bool) -> None:
        """Note whether the next row cannot enter because the rows that are held take its bytes."""
        self._lacks_bytes = lacks_bytes

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

    def take(self, slots: Int64Array, columns: Sequence[int] | None = None) -> pa.RecordBatch:
        """Return the rows of slots, at least one, in the order given, with all or only some of the columns."""
        with self._lock:
            return self._rows.take(slots, columns)

    def variable_bytes(self, slots: Int64Array) -> Int64Array:
        """Return what the row of each slot takes in columns without a fixed width."""
        return self._rows.variable_bytes(slots)

    def free(self, slots: Int64Array) -> None:
        """Forget the rows of slots."""
        with self._lock:
            self._rows.drop(slots)
            self._free[self._free_count : self._free_count + len(slots)] = slots
            self._free_count += len(slots)
            self._lacks_bytes = False

    def _check(self) -> None:
        """Assert every invariant, slowly."""
        assert len(np.unique(self._free[: self._free_count])) == self._free_count
        self._rows._check()
