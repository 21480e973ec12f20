"""Names, magic numbers and headers of the files of a paged table (docs/page_format.md)."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from semistream.core.errors import CorruptTableError
from semistream.store.places import local_folder, place

PLAIN_FORMAT = 1
"""The format of all files but some of a table that is ordered by use."""
BY_USE_FORMAT = 2
"""The format of the manifest and the index of a version that is ordered by use; the newest that this code reads."""
HEADER_BYTES = 64
PAGES_MAGIC = b"SSPAGES\0"
INDEX_MAGIC = b"SSINDEX\0"
TEMPORARY_PREFIX = place.TEMPORARY_PREFIX
LARGEST_PAGE_BYTES = 2**31 - 1
PINS_NAME = "pins"
"""The folder of pins: which version each batch of a query was joined with."""
HOT_NAME = "hot"
"""The folder of rows that workers had cached, for those that start later."""

_NUMBERED = {
    "manifest": re.compile(r"manifest-(\d{8,18})\.json"),
    "data": re.compile(r"data-(\d{8,18})-[0-9a-f]{8}\.pages"),
    "index": re.compile(r"index-(\d{8,18})-[0-9a-f]{8}\.pages"),
}
_HEADER = struct.Struct("<8sIIQI")
_TOO_NEW = "install a newer semistream"


@dataclass(frozen=True)
class FileHeader:
    """What the first bytes of a data or index file say; the last two are 0 in a data file."""

    entries: int = 0
    body_crc: int = 0


def manifest_name(version: int) -> str:
    """Return the name of the manifest of a version."""
    return f"manifest-{version:08d}.json"


def data_name(version: int, token: str) -> str:
    """Return the name of the data file that a writer adds with a version."""
    return f"data-{version:08d}-{token}.pages"


def index_name(version: int, token: str) -> str:
    """Return the name of the index file of a version."""
    return f"index-{version:08d}-{token}.pages"


def version_of(name: str, kind: str) -> int | None:
    """Return the version in a name of a file of this kind ("manifest", "data" or "index"); None if it is not one."""
    # A table that nobody vacuums has thousands of names, and they are looked through for every merge.
    match = _NUMBERED[kind].fullmatch(name) if name.startswith(kind) else None
    return int(match[1]) if match else None


def number_of(name: str) -> int:
    """Return the number of the version that a data or index file was written with; 0 if it is neither."""
    return version_of(name, "data") or version_of(name, "index") or 0


def belongs_to_a_table(name: str) -> bool:
    """Say whether a name is one that a writer of tables gives."""
    return (
        name in (local_folder.LOCK_NAME, PINS_NAME, HOT_NAME)
        or name.startswith(TEMPORARY_PREFIX)
        or any(version_of(name, kind) is not None for kind in _NUMBERED)
    )


def encode_header(magic: bytes, header: FileHeader, file_format: int = PLAIN_FORMAT) -> bytes:
    """Return the header that a data or index file starts with."""
    return _HEADER.pack(magic, file_format, 0, header.entries, header.body_crc).ljust(HEADER_BYTES, b"\0")


def decode_header(path: str, magic: bytes, data: bytes) -> FileHeader:
    """Return what a header says, or raise CorruptTableError with what was expected and what was found."""
    if len(data) < HEADER_BYTES:
        raise CorruptTableError(
            f"{path} is {len(data)} bytes long, but expected at least {HEADER_BYTES}: restore it or build again."
        )
    start, file_format, _, entries, body_crc = _HEADER.unpack_from(data)
    if start != magic:
        raise CorruptTableError(
            f"{path} is not a file of a master table: it starts with {start!r}, but expected {magic!r}."
        )
    check_format(path, file_format)
    return FileHeader(entries, body_crc)


def check_format(path: str, file_format: object) -> None:
    """Raise CorruptTableError unless this code can read the format."""
    if file_format in (PLAIN_FORMAT, BY_USE_FORMAT):
        return
    what_to_do = _TOO_NEW if isinstance(file_format, int) and file_format > BY_USE_FORMAT else "restore it"
    raise CorruptTableError(
        f"{path} has format {file_format}, but expected format {BY_USE_FORMAT} or older: {what_to_do}."
    )


def is_of_newer_format(error: CorruptTableError) -> bool:
    """Say whether an error means that the file is sound, but that this code is too old for it."""
    return _TOO_NEW in str(error)
