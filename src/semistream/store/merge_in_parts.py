"""A merge whose changes several processes may sort; one process merges them into the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from semistream.core.errors import ConcurrentWriteError
from semistream.store.address import Address
from semistream.store.paged.format.layout import TEMPORARY_PREFIX
from semistream.store.paged.format.row_layout import RowLayout
from semistream.store.paged.read.paged_file_store import PagedFileStore
from semistream.store.paged.versions.new_version import NewVersion, repeated
from semistream.store.paged.write.arriving_changes import ArrivingChanges
from semistream.store.paged.write.coding import Progress, check_columns, check_names, delete_schema, silent
from semistream.store.paged.write.difference import Difference, checked_at_the_end
from semistream.store.paged.write.duplicates import DuplicateFilter
from semistream.store.paged.write.merge import apply_aligned, apply_changes
from semistream.store.parts import Part
from semistream.store.places.choice import place_of
from semistream.store.places.place import Place

__all__ = ["AppliedDifference", "MergeInParts", "MirrorStep", "check_columns", "check_names", "delete_schema"]


@dataclass(frozen=True)
class MirrorStep:
    """How far a mirror had come, and how far it is once some changes are committed."""

    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True)
class AppliedDifference:
    """What a table has become."""

    version: int
    upserted_rows: int
    deleted_rows: int


class MergeInParts:
    """The next version of the table at an address, which has some rows of the current one changed.

    Has the writer's turn while it is entered. Changes may be written as parts to `address`, in objects whose names
    start with `prefix`; these are removed when it is left. Half of the memory sorts what is sorted here.
    """

    layout: RowLayout
    """Of the rows of the table; known once it is entered."""
    keeps_all: bool
    """Whether all rows of a key are kept; known once it is entered."""

    def __init__(self, address: Address, memory_bytes: int, progress: Progress | None = None) -> None:
        self.address = address.absolute()
        """Where parts are written."""
        self._place = place_of(self.address)
        self._version = NewVersion(self._place)
        self._memory_bytes = memory_bytes
        self._progress = progress or silent
        self._cleanup = ExitStack()

    @property
    def prefix(self) -> str:
        """What the names of parts start with."""
        return f"{TEMPORARY_PREFIX}{self._version.token}-"

    def sorted_upserts(self, data: Any) -> Iterable[pa.RecordBatch]:
        """Sort here what is to be inserted or replaced, as a merge without parts does."""
        return self._local.upserts(data)

    def sorted_deletes(self, data: Any) -> Iterable[pa.RecordBatch]:
        """Sort here what is to be deleted, as a merge without parts does."""
        return self._local.deletes(data)

    def rows_of(self, parts: Sequence[Part], what: str) -> Iterable[pa.RecordBatch]:
        """Return the coded rows of parts, which are sorted by their codes."""
        return _RowsOfParts(self._place, parts, lambda done, total: self._progress(f"reading {what}", done, total))

    def apply(
        self, upserts: Iterable[pa.RecordBatch], deletes: Iterable[pa.RecordBatch], *, rule: str, advice: str
    ) -> int:
        """Merge coded changes, each by ascending code, and return the number of the version.

        `rule` says what happens to several upserts of a key, and `advice` what to do where they are an error.
        """

        def merged(version: NewVersion, old: PagedFileStore) -> int:
            filtering = DuplicateFilter(self.layout, rule, advice=advice)
            return apply_changes(version, old, filtering, upserts, deletes, self._memory_bytes, self._progress)

        def on_top() -> int:
            with NewVersion(self._place) as version, PagedFileStore(self._place, version=version.base) as old:
                self._local.are_for(old.layout, version.token)
                return merged(version, old)

        try:
            return merged(self._version, self._old)
        except ConcurrentWriteError:
            if self._place.max_attempts == 1:
                raise
        return repeated(self._place, on_top)

    def apply_difference(
        self,
        upserts: Iterable[pa.RecordBatch],
        deletes: Iterable[pa.RecordBatch] = (),
        *,
        rule: str,
        whole: bool,
        step: MirrorStep | None = None,
        check: Callable[[], None] | None = None,
    ) -> AppliedDifference:
        """Merge only what differs from the table, together with a step of a mirror.

        `whole` says that the upserts are all rows there are, so that others are deleted. `check` is called before
        anything is committed, and may refuse by raising.
        """
        mirror = self._old.manifest.mirror
        if step is not None and step.before != mirror:
            raise ConcurrentWriteError(
                f"Another refresh of {self._place.shown()} was quicker: refresh again on top of it."
            )
        filtering = DuplicateFilter(self.layout, rule)
        difference = Difference(self._old, self._memory_bytes // 2, self._progress)
        rows = filtering.filtered(upserts)
        changes = difference.from_all_rows(rows) if whole else difference.from_changes(rows, deletes)
        version = apply_aligned(
            self._version,
            self._old,
            filtering,
            checked_at_the_end(changes, check),
            self._memory_bytes // 2,
            self._progress,
            mirror if step is None else step.after,
        )
        return AppliedDifference(version, difference.upserted_rows, difference.deleted_rows)

    def __enter__(self) -> Self:
        cleanup = self._cleanup
        try:
            cleanup.enter_context(self._version)
            self._old = cleanup.enter_context(PagedFileStore(self._place, version=self._version.base))
            self.layout = self._old.layout
            self.keeps_all = self._old.manifest.on_duplicate == "all"
            self._local = ArrivingChanges(self._place, self._memory_bytes // 2, self._progress, cleanup)
            self._local.are_for(self.layout, self._version.token)
            cleanup.callback(self._remove_parts)
        except BaseException as error:
            cleanup.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cleanup.__exit__(kind, error, trace)

    def _remove_parts(self) -> None:
        for name in self._place.names(starting=self.prefix):
            self._place.remove_if_possible(name)


class _RowsOfParts(Iterable[pa.RecordBatch]):
    """The rows of some parts, which may be read again."""

    def __init__(self, place: Place, parts: Sequence[Part], report: Callable[[int, int], None]) -> None:
        self._place = place
        self._parts = parts
        self._report = report

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        done, total = 0, sum(part.row_count for part in self._parts)
        for part in self._parts:
            with self._place.stream(part.file.name) as file, pa.ipc.open_stream(file) as batches:
                for batch in batches:
                    done += batch.num_rows
                    self._report(done, total)
                    yield batch
