"""Writes the pages of a new version into a new data file."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray
from semistream.core.errors import RowTooLargeError
from semistream.store.paged.format import layout
from semistream.store.paged.format.page import encode_within
from semistream.store.paged.format.row_layout import RowLayout
from semistream.store.paged.versions.manifest import TableFile
from semistream.store.paged.versions.page_index import PageIndex, address
from semistream.store.paged.write.packing import PagePacker
from semistream.store.places.place import NewObject

_FLUSH_BYTES = 1 << 20


class AppendFile:
    """A new object that blocks of bytes are appended to, by few large writes."""

    def __init__(self, target: NewObject) -> None:
        self._target = target
        self.name = target.name
        self.size_bytes = 0
        self._pending: list[bytes | memoryview] = []
        self._pending_bytes = 0

    def append(self, block: bytes | pa.Buffer) -> int:
        """Append a block and return its offset."""
        offset = self.size_bytes
        self._pending.append(memoryview(block))
        self._pending_bytes += len(block)
        self.size_bytes += len(block)
        if self._pending_bytes >= _FLUSH_BYTES:
            self.flush()
        return offset

    def flush(self) -> None:
        """Hand all blocks over."""
        if self._pending:
            self._target.write(b"".join(self._pending))
            self._pending.clear()
            self._pending_bytes = 0

    def finish(self) -> TableFile:
        """Make the object last, close it and return its entry for the manifest."""
        self.flush()
        self._target.finish()
        return TableFile(self.name, self.size_bytes)

    def set_aside(self, label: str) -> NewObject:
        """Return what was appended as a temporary object; nothing more must be appended."""
        self.flush()
        return self._target.set_aside(label)

    def close(self) -> None:
        """Close the object without flushing it."""
        self._target.close()

    def discard(self) -> None:
        """Close and remove the object."""
        self._target.discard()


def new_data_file(target: NewObject) -> AppendFile:
    """Return a data file that has no pages yet."""
    file = AppendFile(target)
    file.append(layout.encode_header(layout.PAGES_MAGIC, layout.FileHeader()))
    return file


class PageWriter:
    """Packs sorted coded rows into pages of a data file, which others may write to as well, and remembers where."""

    def __init__(self, file: AppendFile, row_layout: RowLayout, page_bytes: int) -> None:
        self.row_count = 0
        self._page_bytes = page_bytes
        self._packer = PagePacker(row_layout, page_bytes)
        self._file = file
        self._entries = array("q")

    def add(self, coded: pa.RecordBatch, breaks: BoolArray | None = None) -> None:
        """Write the next rows; codes must not be smaller than those before."""
        self._write(self._packer.add(coded, breaks))

    def write_rest(self) -> None:
        """Write all rows that are still held."""
        self._write(self._packer.finish())

    def index(self, file_number: int) -> PageIndex:
        """Return the entries of all pages, in a data file of this number."""
        first_codes, offsets, *others = np.array(self._entries, dtype=np.int64).reshape(-1, 5).T.copy()
        lengths, row_counts, checksums = (column.astype(np.uint32) for column in others)
        return PageIndex(first_codes, address(file_number, offsets), lengths, row_counts, checksums)

    def _write(self, pages: Iterable[tuple[int, pa.RecordBatch]]) -> None:
        for first_code, rows in pages:
            page = encode_within(rows, self._page_bytes)
            if page.size > layout.LARGEST_PAGE_BYTES:
                raise RowTooLargeError(
                    f"The {rows.num_rows} rows of one key need {page.size} bytes, but a page has at most "
                    f"{layout.LARGEST_PAGE_BYTES}: make the rows smaller."
                )
            offset = self._file.append(page)
            self._entries.extend((first_code, offset, page.size, rows.num_rows, zlib.crc32(page)))
            self.row_count += rows.num_rows
