"""A merge whose changes several processes may sort; one process merges them into the table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from semistream.core.durable_files import names_in, open_to_read, remove_if_possible
from semistream.core.errors import ConcurrentWriteError
from semistream.store.address import Address
from semistream.store.paged.format.layout import TEMPORARY_PREFIX
from semistream.store.paged.format.row_layout import RowLayout
from semistream.store.paged.read.paged_file_store import PagedFileStore
from semistream.store.paged.versions.new_version import NewVersion
from semistream.store.paged.write.coding import Progress, check_columns, check_names, delete_schema, silent
from semistream.store.paged.write.difference import Difference, checked_at_the_end
from semistream.store.paged.write.duplicates import DuplicateFilter
from semistream.store.paged.write.merge import ArrivingChanges, apply_aligned, apply_changes
from semistream.store.parts import Part

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

    Holds the writer's lock while it is entered. Changes may be written as parts into `directory`, in files whose names
    start with `prefix`; these are removed when it is left. Half of the memory sorts what is sorted here.
    """

    layout: RowLayout
    """Of the rows of the table; known once it is entered."""
    keeps_all: bool
    """Whether all rows of a key are kept; known once it is entered."""

    def __init__(self, address: Address, memory_bytes: int, progress: Progress | None = None) -> None:
        self._version = NewVersion(address.absolute().path)
        self._memory_bytes = memory_bytes
        self._progress = progress or silent
        self._cleanup = ExitStack()

    @property
    def directory(self) -> Path:
        """Where parts are written."""
        return self._version.directory

    @property
    def prefix(self) -> str:
        """What the names of parts start with."""
        return f"{TEMPORARY_PREFIX}{self._version.token}-"

    def sorted_upserts(self, data: Any) -> Iterator[pa.RecordBatch]:
        """Sort here what is to be inserted or replaced, as a merge without parts does."""
        return self._local.upserts(data)

    def sorted_deletes(self, data: Any) -> Iterator[pa.RecordBatch]:
        """Sort here what is to be deleted, as a merge without parts does."""
        return self._local.deletes(data)

    def rows_of(self, parts: Sequence[Part], what: str) -> Iterator[pa.RecordBatch]:
        """Read the coded rows of parts, which are sorted by their codes."""
        done, total = 0, sum(part.row_count for part in parts)
        for part in parts:
            descriptor = open_to_read(self.directory / part.file.name)
            with os.fdopen(descriptor, "rb") as file, pa.ipc.open_stream(file) as batches:
                for batch in batches:
                    done += batch.num_rows
                    self._progress(f"reading {what}", done, total)
                    yield batch

    def apply(
        self, upserts: Iterable[pa.RecordBatch], deletes: Iterable[pa.RecordBatch], *, rule: str, advice: str
    ) -> int:
        """Merge coded changes, each by ascending code, and return the number of the version.

        `rule` says what happens to several upserts of a key, and `advice` what to do where they are an error.
        """
        filtering = DuplicateFilter(self.layout, rule, advice=advice)
        return apply_changes(self._version, self._old, filtering, upserts, deletes, self._memory_bytes, self._progress)

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
            raise ConcurrentWriteError(f"Another refresh of {self.directory} was quicker: refresh again on top of it.")
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
            self._old = cleanup.enter_context(PagedFileStore(self.directory))
            self.layout = self._old.layout
            self.keeps_all = self._old.manifest.on_duplicate == "all"
            self._local = ArrivingChanges(self._version, self._old, self._memory_bytes // 2, self._progress, cleanup)
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
        for name in names_in(self.directory):
            if name.startswith(self.prefix):
                remove_if_possible(self.directory / name)
