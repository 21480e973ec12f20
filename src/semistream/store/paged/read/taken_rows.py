"""The memory that rows are gathered into, and the record batch that it becomes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array, UInt8Array
from semistream.core.errors import SemistreamError
from semistream.store.paged.format.page_columns import BITS, BYTES, FIXED, Gathering
from semistream.store.paged.read.gathering import (
    COUNTS_SIZE,
    KIND,
    PLACE_SIZE,
    VALIDITY_AT,
    VALUE_BYTES,
    VALUES_AT,
    WIDTH,
)

_MAX_STRING_BYTES = 2**31 - 1  # what offsets of 32 bits can tell


class TakenRows:
    """Two blocks of memory for all columns: one for what has a size that is known beforehand, one for strings.

    `fixed` is filled first, then `strings` is asked for and filled, then the batch is made.
    """

    def __init__(self, gathering: Gathering, row_count: int) -> None:
        self._gathering = gathering
        self._row_count = row_count
        column_count = len(gathering.types)
        self.places: Int64Array = np.empty((column_count, PLACE_SIZE), dtype=np.int64)
        self.places[:, :VALIDITY_AT] = gathering.places
        bit_bytes = _padded(-(-row_count // 8))
        size = 0
        self._kinds: list[int] = gathering.places[:, KIND].tolist()
        self._widths: list[int] = gathering.places[:, WIDTH].tolist()
        self._validity_at, self._values_at = [], []
        for kind, width in zip(self._kinds, self._widths, strict=True):
            self._validity_at.append(size)
            size += bit_bytes
            self._values_at.append(size)
            size += bit_bytes if kind == BITS else _padded((row_count + (kind != FIXED)) * width)
        self.places[:, VALIDITY_AT] = self._validity_at
        self.places[:, VALUES_AT] = self._values_at
        self.counts: Int64Array = np.zeros((column_count, COUNTS_SIZE), dtype=np.int64)
        self._fixed = pa.allocate_buffer(size)
        self.fixed: UInt8Array = np.frombuffer(self._fixed, dtype=np.uint8)
        self._strings: pa.Buffer | None = None

    @property
    def size_bytes(self) -> int:
        """What all columns take, known once `fixed` is filled."""
        return int(self._fixed.size + self.counts[:, VALUE_BYTES].sum())

    def count_within(self, limit_bytes: int) -> int:
        """Return how many of the first rows take no more than the limit, at least one; once `fixed` is filled."""
        sums = np.arange(1, self._row_count + 1, dtype=np.int64) * -(-self._fixed.size // self._row_count)
        for kind, width, at in zip(self._kinds, self._widths, self._values_at, strict=True):
            if kind >= BYTES:
                offsets = self.fixed[at : at + (self._row_count + 1) * width].view(np.int32 if width == 4 else np.int64)
                sums += offsets[1:]
        return max(1, int(np.searchsorted(sums, limit_bytes, side="right")))

    def strings(self) -> UInt8Array | None:
        """Return the memory for the bytes of all strings, one column behind the other; None if there are none."""
        sizes: list[int] = self.counts[:, VALUE_BYTES].tolist()
        for name, kind, size in zip(self._gathering.schema.names, self._kinds, sizes, strict=True):
            if kind == BYTES and size > _MAX_STRING_BYTES:
                raise SemistreamError(
                    f"{self._row_count} rows have {size} bytes in the column {name!r}, more than a batch can hold: "
                    "take fewer rows at once."
                )
        if not any(kind >= BYTES for kind in self._kinds):
            return None
        self._strings = pa.allocate_buffer(sum(sizes))
        return np.frombuffer(self._strings, dtype=np.uint8)

    def batch(self) -> pa.RecordBatch:
        """Return the rows."""
        schema = self._gathering.schema
        bit_bytes = -(-self._row_count // 8)
        string_at = 0
        arrays = []
        for column, (nulls, string_bytes) in enumerate(self.counts.tolist()):
            kind, width = self._kinds[column], self._widths[column]
            validity = self._fixed.slice(self._validity_at[column], bit_bytes) if nulls else None
            values_bytes = bit_bytes if kind == BITS else (self._row_count + (kind != FIXED)) * width
            buffers = [validity, self._fixed.slice(self._values_at[column], values_bytes)]
            if self._strings is not None and kind >= BYTES:
                buffers.append(self._strings.slice(string_at, string_bytes))
                string_at += string_bytes
            array = pa.Array.from_buffers(self._gathering.types[column], self._row_count, buffers, nulls)
            data_type = schema.field(column).type
            if isinstance(data_type, pa.BaseExtensionType):
                array = pa.ExtensionArray.from_storage(data_type, array)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _padded(size_bytes: int) -> int:
    return -(-size_bytes // 64) * 64
