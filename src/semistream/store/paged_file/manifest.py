"""The manifests of a table: each describes one version; a version exists once its manifest has its numbered name."""

from __future__ import annotations

import base64
import json
import os
import uuid
import zlib
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from semistream.core.errors import ConcurrentWriteError, CorruptTableError, MasterNotFoundError
from semistream.store.paged_file.files import names_in, read_file, sync_directory, write_durably
from semistream.store.paged_file.layout import (
    FORMAT,
    TEMPORARY_PREFIX,
    check_format,
    manifest_name,
    version_of,
)

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
        }
        body = json.dumps(fields).encode() + b"\n"
        header = {"magic": _MAGIC, "format": FORMAT, "body_bytes": len(body), "body_crc": zlib.crc32(body)}
        return json.dumps(header).encode() + b"\n" + body


def decode(path: Path, content: bytes) -> Manifest:
    """Return the manifest in `content`, or raise CorruptTableError with what was expected and what was found."""
    line, newline, body = content.partition(b"\n")
    header = _json_object(line)
    if not newline or header.get("magic") != _MAGIC:
        raise CorruptTableError(
            f"{path} is no manifest of a master table: expected is a header line, but it has {len(content)} bytes "
            f"that start with {content[:16]!r}."
        )
    check_format(path, header.get("format"))
    if header.get("body_bytes") != len(body):
        raise CorruptTableError(
            f"{path} is truncated or damaged: expected are {header.get('body_bytes')} bytes after its header, "
            f"but it has {len(body)}."
        )
    if header.get("body_crc") != zlib.crc32(body):
        raise CorruptTableError(
            f"{path} is damaged: expected is the checksum {header.get('body_crc')}, but it has {zlib.crc32(body)}."
        )
    try:
        return _from_fields(path, json.loads(body))
    except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise CorruptTableError(f"{path} does not describe a version of a master table: {error!r}.") from None


def versions(directory: Path) -> list[int]:
    """Return the numbers of all manifests, valid or not, in ascending order."""
    try:
        names = names_in(directory)
    except FileNotFoundError:
        raise MasterNotFoundError(
            f"There is no master table at {directory}: build one with MasterTable.build(data, path, key=...)."
        ) from None
    except NotADirectoryError:
        raise MasterNotFoundError(
            f"{directory} is a file, but a master table is a directory: give the directory that was built."
        ) from None
    return sorted(version for name in names if (version := version_of(name, "manifest")) is not None)


def load(directory: Path, version: int) -> Manifest:
    """Return the manifest of one version."""
    path = directory / manifest_name(version)
    try:
        manifest = decode(path, read_file(path))
    except FileNotFoundError:
        known = versions(directory)
        raise MasterNotFoundError(
            f"The master table at {directory} has no version {version}: "
            f"it has {', '.join(map(str, known)) if known else 'none'}."
        ) from None
    if manifest.version != version:
        raise CorruptTableError(f"{path} describes version {manifest.version}, but expected is {version}.")
    return manifest


def current(directory: Path) -> Manifest:
    """Return the highest valid manifest; one that was only half written is passed over, a newer format is not."""
    known = versions(directory)
    if not known:
        raise MasterNotFoundError(
            f"There is no master table at {directory}: build one with MasterTable.build(data, path, key=...)."
        )
    first_error: CorruptTableError | None = None
    for version in reversed(known):
        try:
            return load(directory, version)
        except CorruptTableError as error:
            if "newer semistream" in str(error):
                raise
            first_error = first_error or error
    assert first_error is not None
    raise first_error


def commit(directory: Path, manifest: Manifest) -> None:
    """Make a version exist, all or nothing; must be called after its files are on the disk.

    A link cannot replace a name, so of two writers that try the same number one raises ConcurrentWriteError.
    """
    path = directory / manifest_name(manifest.version)
    temporary = directory / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}-{path.name}"
    try:
        write_durably(temporary, manifest.encode())
        sync_directory(directory)
        os.link(temporary, path)
        sync_directory(directory)
    except FileExistsError:
        raise ConcurrentWriteError(
            f"Another writer committed version {manifest.version} of {directory} first: try again on top of it."
        ) from None
    finally:
        temporary.unlink(missing_ok=True)


def _json_object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line[:4096])
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _from_fields(path: Path, fields: dict[str, Any]) -> Manifest:
    index = TableFile(**fields["index"])
    files = tuple(TableFile(**file) for file in fields["files"])
    for file, kind in [(index, "index"), *((file, "data") for file in files)]:
        # Only names that writers give: a name with a path in it would lead out of the table.
        if version_of(file.name, kind) is None:
            raise CorruptTableError(f"{path} names {file.name!r}, which is no {kind} file of a master table.")
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
        files=files,
        created=str(fields["created"]),
    )
