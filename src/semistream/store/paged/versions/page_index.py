"""Where each page of a version lies: the content of an index file."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semistream.core.arrays import Int64Array, UInt32Array
from semistream.core.errors import CorruptTableError
from semistream.store.paged.format.layout import HEADER_BYTES, INDEX_MAGIC, FileHeader, decode_header, encode_header
from semistream.store.paged.versions.manifest import Manifest, TableFile
from semistream.store.places.place import Place

_FILE_SHIFT = 44
_OFFSET_MASK = (1 << _FILE_SHIFT) - 1
_COLUMNS = (("<i8", 8), ("<u4", 4), ("<u8", 8), ("<u4", 4), ("<u4", 4), ("<u4", 4))
_ENTRY_BYTES = sum(size for _, size in _COLUMNS)


@dataclass(frozen=True)
class PageIndex:
    """One entry a page, in the order of their codes; 28 bytes a page in memory.

    An address is the number of the data file in its high bits and the offset in its low ones, so that a page follows
    another on the disk exactly when its address is the other's end.
    """

    first_codes: Int64Array
    addresses: Int64Array
    lengths: UInt32Array
    row_counts: UInt32Array
    checksums: UInt32Array

    def __len__(self) -> int:
        return len(self.first_codes)

    @property
    def files(self) -> Int64Array:
        """The number of each page's data file."""
        return file_of(self.addresses)

    @property
    def offsets(self) -> Int64Array:
        """Where each page starts in its data file."""
        return offset_of(self.addresses)

    def chosen(self, pages: Int64Array) -> PageIndex:
        """Return the entries of these pages."""
        return PageIndex(
            self.first_codes[pages],
            self.addresses[pages],
            self.lengths[pages],
            self.row_counts[pages],
            self.checksums[pages],
        )

    def renumbered(self, new_files: Int64Array) -> PageIndex:
        """Return the same entries with each file number replaced by the one it has in `new_files`."""
        moved = address(new_files[self.files], self.offsets)
        return PageIndex(self.first_codes, moved, self.lengths, self.row_counts, self.checksums)


def address(file: Int64Array | int, offset: Int64Array | int) -> Int64Array:
    """Return file number and offset in one number."""
    return (np.asarray(file, dtype=np.int64) << _FILE_SHIFT) | offset


def file_of(addresses: Int64Array) -> Int64Array:
    """Return the file numbers of addresses."""
    return addresses >> _FILE_SHIFT


def offset_of(addresses: Int64Array) -> Int64Array:
    """Return the offsets of addresses in their files."""
    return addresses & _OFFSET_MASK


def parted(page_address: int) -> tuple[int, int]:
    """Return the file number and the offset of an address."""
    return page_address >> _FILE_SHIFT, page_address & _OFFSET_MASK


def joined(left: PageIndex, right: PageIndex) -> PageIndex:
    """Return the entries of two indexes over different codes, in the order of their codes."""
    both = PageIndex(
        np.concatenate([left.first_codes, right.first_codes]),
        np.concatenate([left.addresses, right.addresses]),
        np.concatenate([left.lengths, right.lengths]),
        np.concatenate([left.row_counts, right.row_counts]),
        np.concatenate([left.checksums, right.checksums]),
    )
    return both.chosen(np.argsort(both.first_codes, kind="stable"))


def write_index(place: Place, name: str, index: PageIndex) -> TableFile:
    """Write an index file and return its entry for the manifest."""
    columns: list[NDArray[Any]] = [
        index.first_codes,
        index.files,
        index.offsets,
        index.lengths,
        index.row_counts,
        index.checksums,
    ]
    body = b"".join(column.astype(kind).tobytes() for column, (kind, _) in zip(columns, _COLUMNS, strict=True))
    crc = zlib.crc32(body)
    content = encode_header(INDEX_MAGIC, FileHeader(len(index), crc)) + body
    target = place.new_object(name)
    try:
        target.write(content)
        target.finish()
    finally:
        target.close()
    return TableFile(name, len(content), crc)


def read_index(place: Place, manifest: Manifest) -> PageIndex:
    """Return the index of a version, or raise CorruptTableError if it is damaged or points outside the data files."""
    path = place.shown(manifest.index.name)
    content = place.read(manifest.index.name)
    if len(content) != manifest.index.size_bytes:
        raise CorruptTableError(
            f"{path} is truncated or damaged: expected {manifest.index.size_bytes} bytes, found {len(content)}."
        )
    header = decode_header(path, INDEX_MAGIC, content)
    body = memoryview(content)[HEADER_BYTES:]
    crc = zlib.crc32(body)
    if crc != header.body_crc or crc != manifest.index.crc:
        raise CorruptTableError(f"{path} is damaged: expected the checksum {manifest.index.crc}, found {crc}.")
    if not header.entries == manifest.page_count == len(body) / _ENTRY_BYTES:
        raise CorruptTableError(
            f"{path} has {header.entries} pages in {len(body)} bytes, but expected {manifest.page_count} pages."
        )
    parts = []
    start = 0
    for kind, size in _COLUMNS:
        end = start + size * header.entries
        parts.append(np.frombuffer(body[start:end], dtype=kind))
        start = end
    first_codes, files, offsets, lengths, row_counts, checksums = parts
    index = PageIndex(
        first_codes.astype(np.int64),
        address(files.astype(np.int64), offsets.astype(np.int64)),
        lengths.astype(np.uint32),
        row_counts.astype(np.uint32),
        checksums.astype(np.uint32),
    )
    _check_entries(path, manifest, index)
    return index


def _check_entries(path: str, manifest: Manifest, index: PageIndex) -> None:
    files = index.files
    sizes = np.array([file.size_bytes for file in manifest.files], dtype=np.int64)
    faults = {
        "names a file that the manifest does not": bool(len(index)) and bool(files.max() >= len(sizes)),
        "is not in ascending order": bool((index.first_codes[1:] <= index.first_codes[:-1]).any()),
        "has an empty page": bool((index.row_counts == 0).any() or (index.lengths < 8).any()),
        "has a page that is not aligned": bool(((index.addresses | index.lengths) & 7).any()),
        f"has {index.row_counts.sum(dtype=np.int64)} rows where the manifest has {manifest.row_count}": (
            int(index.row_counts.sum(dtype=np.int64)) != manifest.row_count
        ),
    }
    if not any(faults.values()):
        faults["points behind the end of a data file"] = bool((index.offsets + index.lengths > sizes[files]).any())
    for fault, present in faults.items():
        if present:
            raise CorruptTableError(f"{path} {fault}: restore it or build the table again.")
