"""A build whose data files several processes write; one process begins and commits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import numpy as np

from semistream.store.address import Address
from semistream.store.paged.format.row_layout import RowLayout
from semistream.store.paged.versions.new_version import NewVersion, remove_leftovers
from semistream.store.paged.versions.page_index import PageIndex, address
from semistream.store.paged.write.build import check_settings, commit_build, page_bytes_for
from semistream.store.parts import Part
from semistream.store.places.choice import place_of

__all__ = ["BuildInParts", "check_settings", "page_bytes_for"]


class BuildInParts:
    """The next version of the table at an address; holds the writer's lock while it is entered.

    Parts may be written to `address` under the number `version` until it is committed. When it is left, files that
    no version names are removed, where only one writer works at a time.
    """

    def __init__(self, address: Address, layout: RowLayout, on_duplicate: str) -> None:
        self._address = address.absolute()
        self._version = NewVersion(place_of(self._address), create=True)
        self._layout = layout
        self._on_duplicate = on_duplicate

    @property
    def address(self) -> Address:
        """Where parts are written."""
        return self._address

    @property
    def version(self) -> int:
        """The number that the version will have."""
        return self._version.number

    def commit(self, parts: Sequence[Part], page_bytes: int, mirror: Mapping[str, Any] | None = None) -> int:
        """Make the version of these parts, which are sorted by their codes, and return its number."""
        unique = not any(part.kept_duplicates for part in parts)
        files = [part.file for part in parts]
        return commit_build(
            self._version,
            self._layout,
            page_bytes,
            self._on_duplicate,
            files,
            _index_of(parts),
            unique=unique,
            mirror=mirror,
        )

    def __enter__(self) -> Self:
        self._version.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # Attempts that were repeated or lost leave files, and a build that failed leaves all of them. Where writers
            # race they cannot be told from those of another one, and a vacuum removes them when they are old.
            if self._version.place.promises.locks_writers:
                with suppress(OSError):
                    remove_leftovers(self._version.place)
        finally:
            self._version.__exit__(kind, error, trace)


def _index_of(parts: Sequence[Part]) -> PageIndex:
    """Return the pages of all parts, whose files are numbered in this order."""
    indexes = [part.index for part in parts if part.index is not None]
    addresses = [address(number, index.offsets) for number, index in enumerate(indexes)]
    no_codes, no_numbers = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint32)
    return PageIndex(
        np.concatenate([no_codes, *(index.first_codes for index in indexes)]),
        np.concatenate([no_codes, *addresses]),
        np.concatenate([no_numbers, *(index.lengths for index in indexes)]),
        np.concatenate([no_numbers, *(index.row_counts for index in indexes)]),
        np.concatenate([no_numbers, *(index.checksums for index in indexes)]),
    )
