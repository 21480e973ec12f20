"""Looks up rows of a table in a database by sets of keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.keys import KeyCodec
from semistream.store.database.contract import Column, Database
from semistream.store.found_rows import FoundRows, RowReader, found_column

_MAX_KEYS = 10_000
"""How many keys one query has."""


class DatabaseRowReader(RowReader):
    """Asks for keys, thousands by one query, within about `max_bytes`.

    How many keys a query has follows from what rows took so far, and what comes beyond the limit is thrown away.
    """

    def __init__(
        self,
        database: Database,
        key: Column,
        columns: Sequence[Column],
        codec: KeyCodec,
        max_bytes: int,
        row_bytes: int,
    ) -> None:
        self._database = database
        self._key = key
        self._columns = list(columns)
        names = [column.name for column in columns]
        self._asked = self._columns if key.name in names else [*self._columns, key]
        self._key_place = [column.name for column in self._asked].index(key.name)
        self._codec = codec
        self._max_bytes = max_bytes
        self._row_bytes = float(row_bytes)

    def look_up(self, codes: Int64Array, pages: Int32Array) -> FoundRows:
        """Return the rows of the codes, or of the first of them whose rows fit."""
        taken: list[pa.RecordBatch] = []
        sizes: list[Int64Array] = []
        held_bytes = done = 0
        while done < len(codes) and (not done or held_bytes < self._max_bytes):
            room = int((self._max_bytes - held_bytes) / self._row_bytes)
            asked = codes[done : done + max(1, min(_MAX_KEYS, room))]
            rows, counts = self._asked_for(asked)
            size_bytes = rows.nbytes
            if rows.num_rows:
                self._row_bytes = max(1.0, size_bytes / len(asked))
            if held_bytes + size_bytes > 2 * self._max_bytes and len(asked) > 1:
                # The first of these rows whose share is not above the limit, and one code at least.
                share = max(1, int(len(asked) * (self._max_bytes - held_bytes) / size_bytes))
                asked, counts = asked[:share], counts[:share]
                rows = rows.slice(0, int(counts.sum()))
                rows = rows.take(pa.array(np.arange(rows.num_rows)))  # so that the others are freed
                size_bytes = max(rows.nbytes, self._max_bytes - held_bytes)
            taken.append(rows)
            sizes.append(counts)
            held_bytes += size_bytes
            done += len(asked)
        self.page_reads += len(np.unique(pages[:done]))
        bounds = np.concatenate(([0], np.cumsum(np.concatenate(sizes)))).astype(np.int64)
        if not self._columns:
            return FoundRows(bounds, (), done)
        rows = taken[0] if len(taken) == 1 else pa.concat_batches(taken)
        return FoundRows(bounds, tuple(found_column(column) for column in rows.columns), done)

    def _asked_for(self, codes: Int64Array) -> tuple[pa.RecordBatch, Int64Array]:
        """Return the rows of some codes, code after code, and how many each has."""
        rows = self._database.of_codes(self._key, self._asked, codes)
        self.read_requests += 1
        self.bytes_read += rows.nbytes
        found = self._codec.encode([rows.column(self._key_place)]).codes
        if (found[1:] < found[:-1]).any():
            order = np.argsort(found, kind="stable")
            rows, found = rows.take(pa.array(order)), found[order]
        counts = np.searchsorted(found, codes, side="right") - np.searchsorted(found, codes, side="left")
        wanted = rows.select(range(len(self._columns))) if self._columns else rows
        return wanted, counts.astype(np.int64)
