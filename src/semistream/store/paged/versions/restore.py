"""Goes back to an earlier version of a table on purpose."""

from __future__ import annotations

from contextlib import nullcontext

from semistream.core.errors import CorruptTableError
from semistream.store.paged.versions import manifest, pins
from semistream.store.paged.versions.new_version import NewVersion, check_sizes
from semistream.store.paged.versions.page_index import read_index
from semistream.store.places.place import Place


def restore(place: Place, version: int) -> int:
    """Commit the content of a version under a new number and return it; costs a copy of the index.

    The versions in between stay until they are vacuumed. This is also the way out if the newest manifest is damaged.
    The version itself is returned if it is current and whole already.
    """
    with NewVersion(place) as new:
        # Where no writer's turn keeps a vacuum away, a pin does.
        keeping = nullcontext() if place.promises.locks_writers else pins.held(place, f"restore-{new.token}", version)
        with keeping:
            described = manifest.load(place, version)
            try:
                index = read_index(place, described)
            except FileNotFoundError as error:
                raise CorruptTableError(f"{error.filename} is missing: choose another version.") from None
            check_sizes(place, described.files)
            if version == manifest.newest(place):
                return version
            return new.commit(described, index, replaces_all=True)
