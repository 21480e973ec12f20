"""Goes back to an earlier version of a table on purpose."""

from __future__ import annotations

from pathlib import Path

from semistream.core.errors import CorruptTableError
from semistream.store.paged.versions import manifest
from semistream.store.paged.versions.new_version import NewVersion, check_sizes
from semistream.store.paged.versions.page_index import read_index


def restore(path: str | Path, version: int) -> int:
    """Commit the content of a version under a new number and return it; costs a copy of the index.

    The versions in between stay until they are vacuumed. This is also the way out if the newest manifest is damaged.
    The version itself is returned if it is current and whole already.
    """
    directory = Path(path)
    with NewVersion(directory) as new:
        described = manifest.load(directory, version)
        try:
            index = read_index(directory, described)
        except FileNotFoundError as error:
            raise CorruptTableError(f"{error.filename} is missing: choose another version.") from None
        check_sizes(directory, described.files)
        if version == manifest.versions(directory)[-1]:
            return version
        return new.commit(described, index)
