"""A build whose data files several processes write; one process begins and commits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from semistream.store.address import Address
from semistream.store.paged.format.row_layout import RowLayout
from semistream.store.paged.versions.new_version import NewVersion, remove_leftovers
from semistream.store.paged.versions.page_index import PageIndex, address
from semistream.store.paged.write.build import check_settings, commit_build, page_bytes_for
from semistream.store.parts import Part

__all__ = ["BuildInParts", "check_settings", "page_bytes_for"]


class BuildInParts:
    """The next version of the table at an address; holds the writer's lock while it is entered.

    Parts may be written into `directory` under the number `version` until it is committed. When it is left, files that
    no version names are removed.
    """

    def __init__(self, address: Address, layout: RowLayout, on_duplicate: str) -> None:
        self._version = NewVersion(address.absolute().path, create=True)
        self._layout = layout
        self._on_duplicate = on_duplicate

    @property
    def directory(self) -> Path:
        """Where parts are written."""
        return self._version.directory

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
            # Attempts that were repeated or lost leave files, and a build that failed leaves all of them.
            with suppress(OSError):
                remove_leftovers(self.directory)
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
