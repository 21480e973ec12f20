"""Master rows that were looked up by their codes, in a form that compiled loops can gather from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int32Array, Int64Array, UInt8Array
from semistream.core.value_widths import fixed_width, is_bytes

NULL_LENGTH = -1


@dataclass(frozen=True)
class FixedValues:
    """A column of fixed width: `width` bytes a row (one for a boolean), and a byte a row that is 0 for null."""

    values: UInt8Array
    width: int
    valid: UInt8Array | None
    """None if no value is null."""


@dataclass(frozen=True)
class ByteValues:
    """A column of strings or bytes: where each row's bytes start in a heap, and how many they are, or NULL_LENGTH."""

    heap: UInt8Array
    starts: Int64Array
    lengths: Int32Array


FoundColumn: TypeAlias = FixedValues | ByteValues | pa.Array
"""A column of rows that were found; one of a nested type is an Arrow array."""


@dataclass(frozen=True)
class FoundRows:
    """The rows of some codes, code after code; valid until the next look-up."""

    bounds: Int64Array
    """Where the rows of each code start, and at the end the number of rows; equal bounds mean that a code is absent."""
    columns: tuple[FoundColumn, ...]
    code_count: int
    """How many of the codes, from the first on, were looked up before the rows took all the memory they may."""
    chosen: Int64Array | None = None
    """Which of the codes are meant, where not all are."""

    @property
    def firsts(self) -> Int64Array:
        """Where the rows of each code that is meant start."""
        return self.bounds[:-1] if self.chosen is None else self.bounds[self.chosen]

    @property
    def row_counts(self) -> Int64Array:
        """How many rows each code that is meant has."""
        counts: Int64Array = np.diff(self.bounds)
        return counts if self.chosen is None else counts[self.chosen]


@dataclass(frozen=True)
class AskedKeys:
    """The keys of some codes, code after code; keys that share a code are all there, each once."""

    columns: tuple[pa.Array, ...]
    """The values of each key column, of the stream's types."""
    bounds: Int64Array
    """Where the keys of each code start, and at the end the number of keys."""

    def between(self, first: int, last: int) -> list[pa.Array]:
        """Return the keys of the codes from first to last, which is not one of them."""
        start, end = int(self.bounds[first]), int(self.bounds[last])
        return [column.slice(start, end - start) for column in self.columns]


class RowReader(ABC):
    """Looks up master rows by code and copies some of their columns straight out of the pages.

    Made by a store for one choice of columns; to be used by one thread.
    """

    def look_up_keys(self, codes: Int64Array, keys: AskedKeys) -> FoundRows:
        """Return the rows of distinct ascending codes by their keys; for a store without pages.

        Rows of other keys of these codes may be among them.
        """
        raise NotImplementedError

    @abstractmethod
    def look_up(self, codes: Int64Array, pages: Int32Array) -> FoundRows:
        """Return the rows of distinct codes, each on its page; of the first code at least.

        Pages ascend, and so do the codes of a page.
        """

    page_reads = 0
    """Pages read so far."""
    read_requests = 0
    bytes_read = 0


def no_rows_found(columns: pa.Schema) -> FoundRows:
    """Return the answer to a look-up of no code."""
    empty = tuple(found_column(pa.array([], field.type)) for field in columns)
    return FoundRows(np.zeros(1, dtype=np.int64), empty, 0)


def found_column(column: pa.Array) -> FoundColumn:
    """Return an Arrow array as a column that loops can gather from, if its type is not nested."""
    types = pa.types
    data_type = column.type
    if types.is_boolean(data_type):
        return FixedValues(column.cast(pa.uint8()).fill_null(0).to_numpy(), 1, _valid(column))
    if is_bytes(data_type):
        is_large = types.is_large_string(data_type) or types.is_large_binary(data_type)
        return _byte_values(column, np.int64 if is_large else np.int32)
    width = fixed_width(data_type)
    if width is None:
        return column
    start = column.offset * width
    data = np.frombuffer(column.buffers()[1], dtype=np.uint8)[start : start + len(column) * width]
    return FixedValues(data, width, _valid(column))


def _byte_values(column: pa.Array, offset_type: type[np.signedinteger]) -> ByteValues:
    _, offsets, data = column.buffers()
    if not len(column):
        return ByteValues(np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int32))
    bounds = np.frombuffer(offsets, dtype=offset_type)[column.offset : column.offset + len(column) + 1]
    bounds = bounds.astype(np.int64)
    lengths = np.diff(bounds).astype(np.int32)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = NULL_LENGTH
    heap = np.empty(0, np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return ByteValues(heap, bounds[:-1], lengths)


def _valid(column: pa.Array) -> UInt8Array | None:
    if not column.null_count:
        return None
    valid: UInt8Array = column.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
    return valid
