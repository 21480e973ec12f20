"""The manifests of a table: each describes one version; a version exists once its manifest has its numbered name."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pyarrow as pa

from semistream.core.errors import ConcurrentWriteError, CorruptTableError, MasterNotFoundError
from semistream.store.paged.format.layout import (
    BY_USE_FORMAT,
    PLAIN_FORMAT,
    check_format,
    is_of_newer_format,
    manifest_name,
    version_of,
)
from semistream.store.paged.versions.order_by_use import OrderByUse
from semistream.store.places.place import Lease, Place, WriterTurn

_MAGIC = "semistream manifest"


@dataclass(frozen=True)
class TableFile:
    """A data or index file that a version needs."""

    name: str
    size_bytes: int
    crc: int | None = None
    """The checksum of an index file; the pages of a data file have their own."""


@dataclass(frozen=True)
class Manifest:
    """Everything about one version of a table except its rows."""

    version: int
    schema: pa.Schema
    key: tuple[str, ...]
    page_bytes: int
    on_duplicate: str
    unique: bool
    row_count: int
    page_count: int
    index: TableFile
    files: tuple[TableFile, ...]
    """The data files; an index entry names its file by its place here."""
    created: str = ""
    copied: Mapping[str, int] = field(default_factory=dict)
    """Data files that hold copies of pages of earlier versions, with the offset from which on they do."""
    mirror: Mapping[str, Any] | None = None
    """Of a mirror: its source, and how far that has been applied in these rows; plain JSON."""
    by_use: OrderByUse | None = None
    """None if the rows are in the order of their codes."""

    @property
    def identity(self) -> str:
        """What tells this version from all others, even of a table that was removed and built again in its place."""
        return f"{self.index.name} {self.index.crc}"

    def encode(self) -> bytes:
        """Return the manifest as two lines of JSON: the length and checksum of the second line, and the second line."""
        schema = self.schema
        fields = {
            "version": self.version,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "key": list(self.key),
            "page_bytes": self.page_bytes,
            "on_duplicate": self.on_duplicate,
            "unique": self.unique,
            "rows": self.row_count,
            "pages": self.page_count,
            "columns": {field.name: str(field.type) for field in schema},
            "schema": base64.b64encode(schema.serialize().to_pybytes()).decode(),
            "index": asdict(self.index),
            "files": [asdict(file) for file in self.files],
            "copied": {file.name: self.copied[file.name] for file in self.files if file.name in self.copied},
        }
        if self.mirror is not None:
            fields["mirror"] = self.mirror
        if self.by_use is not None:
            fields["by_use"] = asdict(self.by_use)
        body = json.dumps(fields).encode() + b"\n"
        file_format = PLAIN_FORMAT if self.by_use is None else BY_USE_FORMAT
        header = {"magic": _MAGIC, "format": file_format, "body_bytes": len(body), "body_crc": zlib.crc32(body)}
        return json.dumps(header).encode() + b"\n" + body


def decode(path: str, content: bytes) -> Manifest:
    """Return the manifest in `content`, or raise CorruptTableError with what was expected and what was found."""
    line, newline, body = content.partition(b"\n")
    header = _json_object(line)
    if not newline or header.get("magic") != _MAGIC:
        raise CorruptTableError(
            f"{path} is not a manifest of a master table: expected a header line, found {len(content)} bytes "
            f"that start with {content[:16]!r}."
        )
    check_format(path, header.get("format"))
    if header.get("body_bytes") != len(body):
        raise CorruptTableError(
            f"{path} is truncated or damaged: expected {header.get('body_bytes')} bytes after its header, "
            f"found {len(body)}."
        )
    if header.get("body_crc") != zlib.crc32(body):
        raise CorruptTableError(
            f"{path} is damaged: expected the checksum {header.get('body_crc')}, found {zlib.crc32(body)}."
        )
    try:
        return _from_fields(path, json.loads(body))
    except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise CorruptTableError(f"{path} does not describe a version of a master table: {error!r}.") from None


def versions(place: Place) -> list[int]:
    """Return the numbers of all manifests, valid or not, in ascending order."""
    names = place.names(starting="manifest-")
    return sorted(version for name in names if (version := number_in(name)) is not None)


def number_in(name: str) -> int | None:
    """Return the version whose manifest has this name; None if it is not one of a manifest."""
    return version_of(name, "manifest")


def load(place: Place, version: int) -> Manifest:
    """Return the manifest of one version."""
    try:
        return _of_version(place, version, place.read(manifest_name(version)))
    except FileNotFoundError:
        raise _no_such_version(place, version) from None


def leased(place: Place, version: int | None = None) -> tuple[Manifest, Lease]:
    """Return the manifest of a version, by default the current one, which no vacuum removes while the lease is held."""
    while True:
        try:
            if version is None:
                found = place.lease_newest(manifest_name, number_in)
                if found is None:
                    raise _no_table(place)
                number, lease = found
            else:
                number, lease = version, place.lease(manifest_name(version))
        except FileNotFoundError as error:
            if version is not None:
                raise _no_such_version(place, version) from None
            known = versions(place)
            if known and error.filename == place.shown(manifest_name(known[-1])):
                raise _no_such_version(place, known[-1]) from None
            continue  # a merge and a vacuum have put another version in the place of the newest one
        try:
            return _of_version(place, number, lease.content(), is_newest=version is None), lease
        except BaseException:
            lease.release()
            raise


def current(place: Place) -> Manifest:
    """Return the newest manifest; if it is damaged that is an error, since the version before lacks its changes."""
    while True:
        number = newest(place)
        try:
            content = place.read(manifest_name(number))
        except FileNotFoundError:
            if _was_replaced(place, number):
                continue
            raise _no_such_version(place, number) from None
        return _of_version(place, number, content, is_newest=True)


def readable(place: Place) -> dict[int, Manifest | CorruptTableError]:
    """Return the manifests of all versions in ascending order, or what is wrong with them."""
    manifests: dict[int, Manifest | CorruptTableError] = {}
    for version in versions(place):
        try:
            manifests[version] = load(place, version)
        except CorruptTableError as error:
            manifests[version] = error
    return manifests


def commit(place: Place, manifest: Manifest, turn: WriterTurn) -> None:
    """Make a version exist, all or nothing; must be called after its files are there for good.

    A put cannot replace a name, so of two writers that try the same number one raises ConcurrentWriteError. From the
    put on the version exists, and whatever is raised after it must not lead to the removal of its files.
    """
    number = manifest.version
    if not place.put_new(manifest_name(number), manifest.encode(), before=partial(turn.note_number, number)):
        raise ConcurrentWriteError(
            f"Another writer committed version {number} of {place.shown()} first: try again on top of it."
        )
    turn.note_commit(number)


def newest(place: Place) -> int:
    """Return the number of the newest version."""
    number = place.newest(manifest_name, number_in)
    if number is None:
        raise _no_table(place)
    return number


def _was_replaced(place: Place, number: int) -> bool:
    """Say whether a merge and a vacuum have put another version in the place of the newest one."""
    return number not in versions(place)


def _of_version(place: Place, version: int, content: bytes, *, is_newest: bool = False) -> Manifest:
    path = place.shown(manifest_name(version))
    try:
        manifest = decode(path, content)
        if manifest.version != version:
            raise CorruptTableError(f"{path} is damaged: it describes version {manifest.version}, not {version}.")
    except CorruptTableError as error:
        if not is_newest or is_of_newer_format(error):
            raise
        raise CorruptTableError(f"{str(error).rstrip('.')}; {_way_out(place, version)}.") from None
    return manifest


def _way_out(place: Place, damaged: int) -> str:
    older = [version for version, known in readable(place).items() if isinstance(known, Manifest)]
    if not older:
        return "restore the file from a backup, or build the table again"
    return (
        f"restore the file from a backup, or give up the changes of version {damaged} and go back with "
        f"`semistream master restore {place.shown()} --version {older[-1]}`"
    )


def _no_table(place: Place) -> MasterNotFoundError:
    return MasterNotFoundError(
        f"There is no master table at {place.shown()}: build one with MasterTable.build(data, path, key=...)."
    )


def _no_such_version(place: Place, version: int) -> MasterNotFoundError:
    known = versions(place)
    return MasterNotFoundError(
        f"The master table at {place.shown()} has no version {version}: "
        f"it has {', '.join(map(str, known)) if known else 'none'}."
    )


def _json_object(line: bytes) -> dict[str, Any]:
    try:
        content = json.loads(line[:4096])
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _from_fields(path: str, fields: dict[str, Any]) -> Manifest:
    index = TableFile(**fields["index"])
    data_files = tuple(TableFile(**file) for file in fields["files"])
    for file, kind in [(index, "index"), *((file, "data") for file in data_files)]:
        # Only names that writers give: a name with a path in it would lead out of the table.
        if version_of(file.name, kind) is None:
            raise CorruptTableError(f"{path} names {file.name!r}, which is not a {kind} file of a master table.")
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(fields["schema"], validate=True)))
    return Manifest(
        version=int(fields["version"]),
        schema=schema,
        key=tuple(fields["key"]),
        page_bytes=int(fields["page_bytes"]),
        on_duplicate=str(fields["on_duplicate"]),
        unique=bool(fields["unique"]),
        row_count=int(fields["rows"]),
        page_count=int(fields["pages"]),
        index=index,
        files=data_files,
        created=str(fields["created"]),
        copied={str(name): int(offset) for name, offset in fields.get("copied", {}).items()},
        mirror=_mirror(fields.get("mirror")),
        by_use=OrderByUse.of_fields(fields.get("by_use")),
    )


def _mirror(value: object) -> Mapping[str, Any] | None:
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"its mirror is a {type(value).__name__}")
    return value
