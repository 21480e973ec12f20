"""Tells what a table consists of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from semistream.store.paged.versions import manifest
from semistream.store.paged.versions.pins import pins_of


def info(path: str | Path, *, version: int | None = None) -> dict[str, Any]:
    """Return what is known about a table without reading its pages."""
    directory = Path(path)
    described = manifest.current(directory) if version is None else manifest.load(directory, version)
    return {
        "path": str(directory),
        "version": described.version,
        "versions": manifest.versions(directory),
        "created": described.created,
        "rows": described.row_count,
        "pages": described.page_count,
        "bytes": described.index.size_bytes + sum(file.size_bytes for file in described.files),
        "schema": {field.name: str(field.type) for field in described.schema},
        "key": list(described.key),
        "page_bytes": described.page_bytes,
        "on_duplicate": described.on_duplicate,
        "unique": described.unique,
        "mirror": described.mirror,
        "files": [{"name": file.name, "bytes": file.size_bytes} for file in (described.index, *described.files)],
        "pins": [
            {"query": pin.owner, "batch": pin.batch, "version": pin.version, "age_seconds": pin.age_seconds}
            for pin in pins_of(directory)
        ],
    }
