"""A version that is being written: nothing is left behind unless it is committed."""

from __future__ import annotations

import errno
import random
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

from semistream.core.errors import (
    ConcurrentWriteError,
    CorruptTableError,
    MasterNotFoundError,
    SemistreamError,
    StoreUnavailableError,
)
from semistream.store.paged.format import layout
from semistream.store.paged.versions import manifest
from semistream.store.paged.versions.manifest import Manifest, TableFile
from semistream.store.paged.versions.order_by_use import OrderByUse
from semistream.store.paged.versions.page_index import PageIndex, write_index
from semistream.store.places.place import Place

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 1.0


class NewVersion:
    """Takes the writer's turn, names the files of the next version, and commits it or removes them.

    Whether it was committed is asked of the place and not remembered: an interrupt may come between the put that makes
    the version exist and the line that would remember it.
    """

    def __init__(self, place: Place, *, create: bool = False) -> None:
        self.place = place
        self.token = uuid.uuid4().hex[:8]
        self.number = 1
        self._create = create
        self._turn = place.turn()
        self._newest: int | None = None
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        if self._create:
            self.place.make(layout.belongs_to_a_table, lambda name: manifest.number_in(name) is not None)
        else:
            self.place.check_exists()
        self._turn.__enter__()
        try:
            self.number = self._next_number()
            if self.place.promises.locks_writers:
                remove_leftovers(self.place)
        except BaseException:
            self._turn.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is not None:
                self._clean_up(error)
        finally:
            self._turn.release()

    @property
    def base(self) -> int | None:
        """The version that this one is made from, where another writer may commit meanwhile; None is the current."""
        return None if self.place.promises.locks_writers else self._newest

    @property
    def data_name(self) -> str:
        """The name of the object that the pages of this version go to."""
        return layout.data_name(self.number, self.token)

    def commit(self, described: Manifest, index: PageIndex, *, replaces_all: bool = False) -> int:
        """Write the index and the manifest, and return the number of the version; its data must be there for good.

        What `replaces_all` rows does not depend on the version before it: if another writer was faster it takes the
        next number.
        """
        if not replaces_all:
            return self._commit(described, index)
        return repeated(self.place, lambda: self._commit(described, index), between=self._take_next_number)

    def _commit(self, described: Manifest, index: PageIndex) -> int:
        complete = replace(
            described,
            by_use=_described(described.by_use, index),
            version=self.number,
            index=write_index(self.place, self._index_name, index),
            row_count=int(index.row_counts.sum()),
            page_count=len(index),
        )
        self._check_age()
        # Where locks do not reach, another writer may have taken our files for those of one that died.
        check_sizes(self.place, (complete.index, *complete.files))
        manifest.commit(self.place, complete, self._turn)
        return self.number

    def _take_next_number(self) -> None:
        self.place.remove_if_possible(self._index_name)
        self.number = self._next_number()

    def _check_age(self) -> None:
        limit = self.place.leftover_seconds / 2
        if limit and time.monotonic() - self._began > limit:
            raise SemistreamError(
                f"Writing a version of {self.place.shown()} took longer than {limit / 3600:.0f} hours, after which a "
                f"vacuum may take its files for leftovers: write it in less time, for example by Spark."
            )

    @property
    def _index_name(self) -> str:
        return layout.index_name(self.number, self.token)

    def _next_number(self) -> int:
        # In this order: what was noted by then is not above what is found, so that no number is left out.
        noted = self._turn.highest_number()
        self._newest = self.place.newest(layout.manifest_name, manifest.number_in)
        used = self._newest or 0
        if noted is None:
            # A table of an earlier semistream: a file may be all that is left of a version.
            noted = max((layout.number_of(name) for name in self.place.names()), default=0)
        return max(used, noted) + 1

    def _clean_up(self, error: BaseException | None) -> None:
        """Remove the files of a version that does not exist; of one that does, only say what went wrong."""
        if self._is_committed():
            if isinstance(error, OSError):
                raise SemistreamError(
                    f"Version {self.number} of {self.place.shown()} was committed, but the system does not confirm "
                    f"that it is on the disk ({error.strerror}): check the disk; the version may be gone after a power "
                    f"failure."
                ) from error
            return
        if isinstance(error, StoreUnavailableError):
            # A put whose answer was lost may still arrive, and would need the files.
            return
        # What cannot be removed is a leftover for the next writer or vacuum.
        with suppress(OSError, SemistreamError):
            for name in self.place.names():
                if f"-{self.token}" in name:
                    self.place.remove_if_possible(name)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise SemistreamError(
                f"The disk of {self.place.shown()} is full: free some space and try again; the table is as it was "
                f"before."
            ) from error

    def _is_committed(self) -> bool:
        """Say whether the manifest of our number is ours; if nobody can tell it counts as ours."""
        try:
            return manifest.load(self.place, self.number).index.name == self._index_name
        except MasterNotFoundError:
            return False
        except (SemistreamError, OSError):
            return True


def _described(by_use: OrderByUse | None, index: PageIndex) -> OrderByUse | None:
    """Return how the pages of an index are ordered by use; None if they are in one order."""
    classes = index.classes
    if classes is None:
        return None
    assert by_use is not None, "pages are in classes, but nobody knows why"
    return replace(
        by_use,
        pages=tuple(classes.page_counts.tolist()),
        keys=len(classes.heat_map.entries),
        map_bytes=len(classes.heat_map.encode()),
    )


def repeated(place: Place, work: Callable[[], int], *, between: Callable[[], None] | None = None) -> int:
    """Do work that may lose a race with another writer, and again on top of what that one did, after a random pause."""
    for attempt in range(1, place.max_attempts):
        try:
            return work()
        except ConcurrentWriteError:
            longest = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** min(attempt, 10))
            time.sleep(random.uniform(0, longest))
            if between is not None:
                between()
    return work()


def remove_leftovers(place: Place) -> list[str]:
    """Remove what writers that died have left; must be called in the writer's turn, where there are turns.

    A version names only files of its own number or of lower ones. Therefore only files above the newest manifest are
    taken for leftovers, and those of its own number that it does not name: tasks that were repeated leave such. Older
    ones are left to a vacuum, which looks at all manifests.
    """
    names = place.names()
    newest = max((manifest.number_in(name) or 0 for name in names), default=0)
    leftovers = [name for name in names if name.startswith(layout.TEMPORARY_PREFIX)]
    numbers = {name: number for name in names if (number := layout.number_of(name))}
    leftovers += [name for name, number in numbers.items() if number > newest]
    of_newest = {name for name, number in numbers.items() if number == newest}
    if len(of_newest) > 2:
        # A damaged one may need any of the files, and somebody may want to rescue it.
        with suppress(CorruptTableError):
            leftovers += of_newest - names_of(manifest.load(place, newest))
    for name in sorted(leftovers):
        place.remove(name)
    return sorted(leftovers)


def names_of(described: Manifest) -> set[str]:
    """Return the names of all files that a version needs."""
    return {described.index.name, *(file.name for file in described.files)}


def check_sizes(place: Place, needed: Iterable[TableFile]) -> None:
    """Raise CorruptTableError unless all these files are there in their full size."""
    needed = list(needed)
    found = place.statuses(file.name for file in needed)
    for file in needed:
        status = found.get(file.name)
        if status is None:
            raise CorruptTableError(f"{place.shown(file.name)} is missing: restore it or build the table again.")
        if status.size_bytes != file.size_bytes:
            raise CorruptTableError(
                f"{place.shown(file.name)} is truncated or damaged: expected {file.size_bytes} bytes, "
                f"found {status.size_bytes}."
            )
