"""Removes old versions of a table, and tells what a table consists of."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from semistream.core.errors import CorruptTableError, InvalidSettingError
from semistream.store.paged_file import layout, manifest
from semistream.store.paged_file.files import names_in, sync_directory
from semistream.store.paged_file.new_version import NewVersion
from semistream.store.paged_file.pins import pinned_versions


def vacuum(path: str | Path, keep_versions: int = 1, *, also_keep: Iterable[int] = ()) -> dict[str, Any]:
    """Remove all but the newest `keep_versions` versions and return what was freed.

    `also_keep` names versions that must stay, and those that a query may replay stay, too. Readers that are open go on.
    Manifests that cannot be read stay, with all files that are as new as they are.
    """
    if keep_versions < 1:
        raise InvalidSettingError(f"keep_versions is {keep_versions}: at least the current version must stay.")
    directory = Path(path)
    with NewVersion(directory):
        known: dict[int, manifest.Manifest] = {}
        unreadable: list[int] = []
        for version in manifest.versions(directory):
            try:
                known[version] = manifest.load(directory, version)
            except CorruptTableError:
                unreadable.append(version)
        if not known:
            manifest.current(directory)
        needed = {*also_keep, *pinned_versions(directory)}
        kept = {*sorted(known)[-keep_versions:], *(version for version in needed if version in known)}
        removed = sorted(set(known) - kept)
        freed_bytes = 0
        for version in removed:
            freed_bytes += _unlink(directory / layout.manifest_name(version))
        # The manifests must be gone before their files are: a version exists in whole or not at all.
        sync_directory(directory)
        used = {file.name for version in kept for file in (known[version].index, *known[version].files)}
        files = []
        for name in sorted(set(names_in(directory)) - used):
            numbers = [layout.version_of(name, kind) for kind in ("data", "index")]
            number = next((found for found in numbers if found is not None), None)
            if number is not None and (not unreadable or number < min(unreadable)):
                freed_bytes += _unlink(directory / name)
                files.append(name)
        return {"versions": removed, "files": files, "bytes": freed_bytes, "kept": sorted(kept)}


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
    }


def _unlink(path: Path) -> int:
    size_bytes = path.lstat().st_size
    path.unlink()
    return size_bytes
