"""Parts of a table that several processes write: each turns sorted rows into a file of its own and reports it.

An attempt that is repeated or lost leaves at most a file that nobody names. What becomes of the parts is in
`build_in_parts.py` and `merge_in_parts.py`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.keys import KeyCodec
from semistream.store.address import Address
from semistream.store.paged.format import layout as file_layout
from semistream.store.paged.format.row_layout import RowLayout, stored_column
from semistream.store.paged.versions.manifest import TableFile
from semistream.store.paged.versions.page_index import PageIndex
from semistream.store.paged.write.build import write_pages
from semistream.store.paged.write.coding import check_required, null_key_error
from semistream.store.paged.write.writer import AppendFile
from semistream.store.places.choice import place_of
from semistream.store.places.place import TEMPORARY_PREFIX

__all__ = [
    "CODE_COLUMN",
    "ArrivingRows",
    "KeyCoder",
    "Part",
    "RowLayout",
    "first_unseen",
    "write_changes",
    "write_data",
]

CODE_COLUMN = "code"
_LARGE_NUMBERS, _SMALL_NUMBERS = ("first_codes", "offsets"), ("lengths", "row_counts", "checksums")


@dataclass(frozen=True)
class Part:
    """A file of rows, sorted by code, that a process has written."""

    file: TableFile
    row_count: int
    first_code: int
    last_code: int
    kept_duplicates: bool = False
    index: PageIndex | None = None
    """The pages of a data file, which has the number 0 in it."""

    @property
    def kept_rows(self) -> int:
        """How many rows its pages have: fewer than came, if of the rows of a key only the latest is kept."""
        return int(self.index.row_counts.sum()) if self.index is not None else 0

    def as_fields(self) -> dict[str, Any]:
        """Return the part as numbers, texts and bytes by name, of which those of the index may be missing."""
        fields: dict[str, Any] = {
            "name": self.file.name,
            "size_bytes": self.file.size_bytes,
            "row_count": self.row_count,
            "first_code": self.first_code,
            "last_code": self.last_code,
            "kept_duplicates": self.kept_duplicates,
        }
        if self.index is not None:
            for name in _LARGE_NUMBERS:
                fields[name] = getattr(self.index, name).astype("<i8").tobytes()
            for name in _SMALL_NUMBERS:
                fields[name] = getattr(self.index, name).astype("<u4").tobytes()
        return fields

    @classmethod
    def of_fields(cls, fields: dict[str, Any]) -> Part:
        """Return the part that was told as fields."""
        index = None
        if fields["first_codes"] is not None:
            large = {name: np.frombuffer(fields[name], dtype="<i8") for name in _LARGE_NUMBERS}
            small = {name: np.frombuffer(fields[name], dtype="<u4") for name in _SMALL_NUMBERS}
            index = PageIndex(
                large["first_codes"], large["offsets"], small["lengths"], small["row_counts"], small["checksums"]
            )
        return cls(
            TableFile(fields["name"], fields["size_bytes"]),
            fields["row_count"],
            fields["first_code"],
            fields["last_code"],
            fields["kept_duplicates"],
            index,
        )


@dataclass(frozen=True)
class KeyCoder:
    """Puts the key code in front of each row; a row whose key nobody can equal gets none, or is left out."""

    key_places: tuple[int, ...]
    key_types: tuple[pa.DataType, ...]
    """The types in which the key columns are stored."""
    code_types: tuple[pa.DataType, ...]
    """The types of the key columns in the table."""
    drop_unusable: bool = False

    @classmethod
    def of(cls, layout: RowLayout, coded_schema: pa.Schema, *, drop_unusable: bool = False) -> KeyCoder:
        """Return what codes rows that have the columns of a schema behind their code."""
        places = tuple(coded_schema.get_field_index(name) - 1 for name in layout.key)
        types = tuple(coded_schema.field(name).type for name in layout.key)
        return cls(places, types, layout.codec.types, drop_unusable)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield each batch with its codes."""
        codec = KeyCodec(self.code_types)
        for batch in batches:
            if not batch.num_rows:
                continue
            places = zip(self.key_places, self.key_types, strict=True)
            encoded = codec.encode([stored_column(batch.column(place), data_type) for place, data_type in places])
            unusable = None if encoded.usable is None else ~encoded.usable
            codes = pa.array(encoded.codes, mask=unusable)
            coded = pa.RecordBatch.from_arrays([codes, *batch.columns], names=[CODE_COLUMN, *batch.schema.names])
            yield coded.filter(pa.array(encoded.usable)) if self.drop_unusable and unusable is not None else coded


class ArrivingRows:
    """Sorted rows as coded rows; may be iterated once, and knows their codes and number afterwards."""

    def __init__(self, coded_schema: pa.Schema, first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> None:
        self.coded_schema = coded_schema
        self._first = first
        self._others = others
        self.row_count = 0
        self.first_code = 0
        self.last_code = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        null_count = 0
        batch: pa.RecordBatch | None = self._first
        while batch is not None:
            codes = batch.column(0)
            # Rows without a code come first and in one part, so that this counts all there are.
            null_count += codes.null_count
            if not null_count:
                yield self._coded(batch)
            batch = next(self._others, None)
        if null_count:
            raise null_key_error(null_count)

    def _coded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        # Behind the columns of the table come those that were only needed for sorting.
        pairs = zip(self.coded_schema, batch.columns, strict=False)
        columns = [stored_column(column, field.type) for field, column in pairs]
        rows = pa.RecordBatch.from_arrays(columns, schema=self.coded_schema)
        check_required(rows)
        if not self.row_count:
            self.first_code = columns[0][0].as_py()
        self.last_code = columns[0][-1].as_py()
        self.row_count += rows.num_rows
        return rows


def write_data(
    address: Address, version: int, layout: RowLayout, page_bytes: int, on_duplicate: str, rows: ArrivingRows
) -> Part:
    """Write rows as pages into a data file of a version that is being built."""
    target = place_of(address).new_object(file_layout.data_name(version, uuid.uuid4().hex[:8]))
    pages = write_pages(target, layout, page_bytes, on_duplicate, rows)
    return Part(pages.file, rows.row_count, rows.first_code, rows.last_code, pages.kept_duplicates, pages.index)


def write_changes(address: Address, prefix: str, rows: ArrivingRows) -> Part:
    """Write rows into a temporary file, from which they are merged."""
    file = AppendFile(place_of(address).new_object(f"{prefix}{uuid.uuid4().hex}"))
    try:
        with pa.PythonFile(_Sink(file), mode="w") as sink, pa.ipc.new_stream(sink, rows.coded_schema) as writer:
            for batch in rows:
                writer.write_batch(batch)
        written = file.finish()
    except BaseException:
        file.discard()
        raise
    return Part(written, rows.row_count, rows.first_code, rows.last_code)


def first_unseen(address: Address, parts: Iterable[Part]) -> Part | None:
    """Return the first part that is not to be seen from here in its full size."""
    place, parts = place_of(address), list(parts)
    # A look at all names makes shared file systems forget which ones they did not find before.
    place.names(starting=TEMPORARY_PREFIX)
    found = place.statuses(part.file.name for part in parts)
    for part in parts:
        status = found.get(part.file.name)
        if status is None or status.size_bytes != part.file.size_bytes:
            return part
    return None


class _Sink:
    """Lets Arrow append to a file that is finished later."""

    closed = False

    def __init__(self, file: AppendFile) -> None:
        self._file = file

    def write(self, data: pa.Buffer) -> int:
        """Append a copy, since the memory is Arrow's."""
        self._file.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Leave that to the file."""

    def close(self) -> None:
        """Leave that to the file."""
