"""Tells what a table consists of."""

from __future__ import annotations

from typing import Any

from semistream.store.paged.versions import manifest
from semistream.store.paged.versions.pins import damaged_pins, pins_of
from semistream.store.places.place import Place


def info(place: Place, *, version: int | None = None) -> dict[str, Any]:
    """Return what is known about a table without reading its pages."""
    described = manifest.current(place) if version is None else manifest.load(place, version)
    damaged = damaged_pins(place)
    return {
        "path": place.shown(),
        "version": described.version,
        "versions": manifest.versions(place),
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
        "by_use": None
        if (by_use := described.by_use) is None
        else {
            "by": by_use.by,
            "pages": list(by_use.pages),
            "keys": by_use.keys,
            "map_bytes": by_use.map_bytes,
        },
        "files": [{"name": file.name, "bytes": file.size_bytes} for file in (described.index, *described.files)],
        "pins": [
            {"query": pin.owner, "batch": pin.batch, "version": pin.version, "age_seconds": pin.age_seconds}
            for pin in pins_of(place, besides=damaged)
        ],
        "damaged_pins": [place.shown(name) for name in damaged],
    }
