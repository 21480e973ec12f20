"""Changes as they arrive: opened, checked, coded and sorted before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import pyarrow as pa

from semistream.core.errors import SchemaDriftError
from semistream.store.paged.format.row_layout import RowLayout
from semistream.store.paged.write.coding import Progress, check_columns, coded_deletes, coded_rows, delete_schema
from semistream.store.paged.write.row_sources import open_source
from semistream.store.paged.write.sorting import ExternalSort, piece_bytes_for
from semistream.store.places.place import Place


class ArrivingChanges:
    """Opens and sorts the changes; their columns are checked before anything is written.

    Where writers race, what was sorted for the first attempt is used again for the others.
    """

    def __init__(self, place: Place, memory_bytes: int, progress: Progress, cleanup: ExitStack) -> None:
        self._place = place
        self._memory_bytes = memory_bytes
        self._piece_bytes = piece_bytes_for(memory_bytes)
        self._progress = progress
        self._cleanup = cleanup
        self._token = ""
        self._layout: RowLayout | None = None
        self._sorted: dict[str, SortedChanges] = {}

    def are_for(self, layout: RowLayout, token: str) -> None:
        """Say which rows they are; must be called first, and raises an error if that changes."""
        if self._layout is None:
            self._layout, self._token = layout, token
        elif not self._layout.schema.equals(layout.schema) or self._layout.key != layout.key:
            raise SchemaDriftError(
                f"Another writer gave {self._place.shown()} other columns meanwhile: look at them and merge again."
            )

    def upserts(self, data: Any) -> Iterable[pa.RecordBatch]:
        """Return the coded rows to insert or replace, sorted when the first one is asked for."""
        if data is None:
            return ()
        if "upserts" not in self._sorted:
            assert self._layout is not None
            source = open_source(data)
            check_columns(self._layout, source.schema)
            rows = coded_rows(self._layout, source, self._piece_bytes)
            self._sort("upserts", rows, self._layout.coded_schema, source.row_count)
        return self._sorted["upserts"]

    def deletes(self, data: Any) -> Iterable[pa.RecordBatch]:
        """Return the codes and keys to delete, sorted when the first one is asked for."""
        if data is None:
            return ()
        if "deletes" not in self._sorted:
            assert self._layout is not None
            source = open_source(data)
            schema = delete_schema(self._layout, source.schema)
            rows = coded_deletes(self._layout, source, schema, self._piece_bytes)
            self._sort("deletes", rows, schema, source.row_count)
        return self._sorted["deletes"]

    def _sort(self, what: str, rows: Iterator[pa.RecordBatch], schema: pa.Schema, total: int | None) -> None:
        sort = ExternalSort(
            self._place,
            f"{self._token}-{what}",
            schema,
            self._memory_bytes,
            repeatable=self._place.max_attempts > 1,
        )
        self._cleanup.callback(sort.close)
        self._sorted[what] = SortedChanges(sort, self._reported(rows, what, total))

    def _reported(self, rows: Iterator[pa.RecordBatch], what: str, total: int | None) -> Iterator[pa.RecordBatch]:
        done = 0
        for piece in rows:
            done += piece.num_rows
            self._progress(f"reading {what}", done, total)
            yield piece


class SortedChanges(Iterable[pa.RecordBatch]):
    """Coded rows in order; sorted when they are first asked for."""

    def __init__(self, sort: ExternalSort, rows: Iterator[pa.RecordBatch]) -> None:
        self._sort = sort
        self._rows = rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for piece in self._rows:
            self._sort.add(piece)
        yield from self._sort.sorted_rows()
