"""Where each page of a version lies: the content of an index file."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semistream.core.arrays import Int64Array, UInt8Array, UInt32Array
from semistream.core.errors import CorruptTableError
from semistream.store.paged.format.heat_map import HeatMap
from semistream.store.paged.format.layout import (
    BY_USE_FORMAT,
    HEADER_BYTES,
    INDEX_MAGIC,
    PLAIN_FORMAT,
    FileHeader,
    decode_header,
    encode_header,
)
from semistream.store.paged.versions.heat_classes import HeatClasses, class_bounds
from semistream.store.paged.versions.manifest import Manifest, TableFile
from semistream.store.places.place import Place

_FILE_SHIFT = 44
_OFFSET_MASK = (1 << _FILE_SHIFT) - 1
_COLUMNS = (("<i8", 8), ("<u4", 4), ("<u8", 8), ("<u4", 4), ("<u4", 4), ("<u4", 4))
_ENTRY_BYTES = sum(size for _, size in _COLUMNS)


@dataclass(frozen=True)
class PageIndex:
    """One entry a page, in the order of their codes, inside each heat class if there are some; 28 bytes a page.

    An address is the number of the data file in its high bits and the offset in its low ones, so that a page follows
    another on the disk exactly when its address is the other's end.
    """

    first_codes: Int64Array
    addresses: Int64Array
    lengths: UInt32Array
    row_counts: UInt32Array
    checksums: UInt32Array
    classes: HeatClasses | None = None
    """The heat classes of these very pages, if the table is ordered by use."""

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
        """Return the entries of these pages, without their classes."""
        return PageIndex(
            self.first_codes[pages],
            self.addresses[pages],
            self.lengths[pages],
            self.row_counts[pages],
            self.checksums[pages],
        )

    def renumbered(self, new_files: Int64Array) -> PageIndex:
        """Return the same entries with each file number replaced by the one it has in `new_files`."""
        return replace(self, addresses=address(new_files[self.files], self.offsets))


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


def in_order(parts: Sequence[tuple[PageIndex, UInt8Array]], classes: HeatClasses | None) -> PageIndex:
    """Return the entries of indexes over different codes, each with the class of its pages, in order.

    `classes` are those of the table before; there are none in a table in one order, whose pages are all of class 0.
    """
    indexes = [index for index, _ in parts]
    both = PageIndex(
        np.concatenate([index.first_codes for index in indexes]),
        np.concatenate([index.addresses for index in indexes]),
        np.concatenate([index.lengths for index in indexes]),
        np.concatenate([index.row_counts for index in indexes]),
        np.concatenate([index.checksums for index in indexes]),
    )
    of_pages = np.concatenate([of_part for _, of_part in parts])
    ordered = both.chosen(np.lexsort((both.first_codes, of_pages)))
    if classes is None:
        return ordered
    page_counts = np.bincount(of_pages, minlength=classes.heat_map.class_count).astype(np.int64)
    return replace(ordered, classes=HeatClasses(page_counts, classes.heat_map))


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
    if index.classes is not None:
        body += index.classes.heat_map.encode()
    crc = zlib.crc32(body)
    file_format = PLAIN_FORMAT if index.classes is None else BY_USE_FORMAT
    content = encode_header(INDEX_MAGIC, FileHeader(len(index), crc), file_format) + body
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
    map_bytes = manifest.by_use.map_bytes if manifest.by_use is not None else 0
    if not header.entries == manifest.page_count == (len(body) - map_bytes) / _ENTRY_BYTES:
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
        _classes(path, manifest, body[start:]),
    )
    _check_entries(path, manifest, index)
    return index


def _classes(path: str, manifest: Manifest, stored_map: memoryview) -> HeatClasses | None:
    """Return the heat classes of a version, whose map of hot keys is stored behind the entries."""
    if manifest.by_use is None:
        return None
    try:
        heat_map = HeatMap.decode(stored_map)
    except ValueError as error:
        raise CorruptTableError(f"{path} has no map of hot keys, because {error}: restore it or build again.") from None
    page_counts = np.array(manifest.by_use.pages, dtype=np.int64)
    if (
        len(page_counts) != heat_map.class_count
        or (page_counts < 0).any()
        or int(page_counts.sum()) != manifest.page_count
    ):
        raise CorruptTableError(
            f"{path} has {heat_map.class_count} heat classes, but expected {manifest.by_use.pages}: restore it or "
            f"build the table again."
        )
    return HeatClasses(page_counts, heat_map)


def _check_entries(path: str, manifest: Manifest, index: PageIndex) -> None:
    files = index.files
    # Codes start anew with each class.
    is_behind = index.first_codes[1:] <= index.first_codes[:-1]
    starts = class_bounds(index.classes, len(index))
    is_behind[starts[(starts > 0) & (starts < len(index))] - 1] = False
    sizes = np.array([file.size_bytes for file in manifest.files], dtype=np.int64)
    faults = {
        "names a file that the manifest does not": bool(len(index)) and bool(files.max() >= len(sizes)),
        "is not in ascending order": bool(is_behind.any()),
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
