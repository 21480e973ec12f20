"""Tells what a table consists of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from semistream.store.paged.versions import manifest
from semistream.store.paged.versions.pins import pins_of


def info(path: str | Path, *, version: int | None = None) -> dict[str, Any]:
    """Return what is known about a table without reading its pages."""
    directory = Path(path)
    found = manifest.current(directory) if version is None else manifest.load(directory, version)
    return {
        "path": str(directory),
        "version": found.version,
        "versions": manifest.versions(directory),
        "created": found.created,
        "rows": found.row_count,
        "pages": found.page_count,
        "bytes": found.index.size_bytes + sum(file.size_bytes for file in found.files),
        "schema": {field.name: str(field.type) for field in found.schema},
        "key": list(found.key),
        "page_bytes": found.page_bytes,
        "on_duplicate": found.on_duplicate,
        "unique": found.unique,
        "files": [{"name": file.name, "bytes": file.size_bytes} for file in (found.index, *found.files)],
        "pins": [
            {"query": pin.owner, "batch": pin.batch, "version": pin.version, "age_seconds": pin.age_seconds}
            for pin in pins_of(directory)
        ],
    }
