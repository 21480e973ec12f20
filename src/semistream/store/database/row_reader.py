"""Looks up rows of a table in a database by sets of keys, some queries side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.budget import format_bytes, format_bytes_up
from semistream.core.errors import RowTooLargeError
from semistream.core.keys import KeyCodec
from semistream.store.database.contract import Column, Database, ResultTooLargeError
from semistream.store.found_rows import AskedKeys, FoundRows, RowReader, found_column

_MAX_KEYS = 10_000
"""How many keys one query has."""
_MAX_ASKED_BYTES = 1 << 20
"""What the keys of one query take, for servers do not take queries of any length."""
_MIN_KEYS = 500
"""A set of fewer keys is not divided among connections."""
_PARTS = 4
"""All queries under way together may bring one part in so many of what a look-up may hold."""
_MARGIN = 0.8
"""So much of what a query may bring is what it is expected to bring."""
_FEWER, _MORE = 8, 2
"""After rows that took too much a query has so many times fewer keys, and after each that did not as many more."""
_DENSE = 5
"""Where no more than so many rows lie between two keys, all of them by a range cost less than keys one by one."""
_MEMORY_SHARE = 14
"""The rows of one key may take about one part in so many of the memory of a join."""

_Ask = Callable[[int, int, int], pa.RecordBatch]
"""Returns the rows of the codes from first to last, which is not one of them, within so many bytes."""


class DatabaseRowReader(RowReader):
    """Asks for keys, thousands by one query and `connections` queries at a time, within `max_bytes`.

    How many keys a query has follows from what rows took so far. What a query may bring is counted before it is here:
    where it would be too much, fewer keys are asked for. Rows of one key that take more than half of `max_bytes`, and
    so all of it while they are decoded, are an error.
    """

    def __init__(
        self,
        database: Database,
        key: Sequence[Column],
        columns: Sequence[Column],
        codec: KeyCodec,
        *,
        table_name: str,
        max_bytes: int,
        row_bytes: int,
        connections: int,
        rows_before: Int64Array | None = None,
    ) -> None:
        self._database = database
        self._rows_before = rows_before
        """How many rows there are before each page, and in all; None without pages."""
        self._key = list(key)
        self._columns = list(columns)
        names = [column.name for column in columns]
        self._asked = [*self._columns, *(part for part in key if part.name not in names)]
        asked_names = [column.name for column in self._asked]
        self._key_places = [asked_names.index(part.name) for part in key]
        self._codec = codec
        self._table_name = table_name
        self._max_bytes = max_bytes
        self._query_bytes = max(1, max_bytes // (_PARTS * connections))
        self._row_bytes = float(row_bytes)
        self._step = _MAX_KEYS
        self._connections = connections
        self._threads: ThreadPoolExecutor | None = None

    def look_up(self, codes: Int64Array, pages: Int32Array) -> FoundRows:
        """Return the rows of the codes, or of the first of them whose rows fit.

        By queries for sets of codes, or for ranges where most rows between the codes are wanted anyway.
        """

        def ask(first: int, last: int, max_bytes: int) -> pa.RecordBatch:
            some = codes[first:last]
            if self._rows_before is not None:
                between = int(self._rows_before[pages[last - 1] + 1] - self._rows_before[pages[first]])
                if last > first + 1 and between <= _DENSE * (last - first):
                    return self._by_ranges(some, between, max_bytes)
            return self._database.of_codes(self._key[0], self._asked, some, max_bytes)

        found = self._found(codes, ask)
        self.page_reads += len(np.unique(pages[: found.code_count]))
        return found

    def _by_ranges(self, codes: Int64Array, expected_rows: int, max_bytes: int) -> pa.RecordBatch:
        """Return the rows of codes by ranges from one to another, each small enough; what lies between is dropped."""
        parts = -(-int(expected_rows * self._row_bytes) // max(1, int(_MARGIN * max_bytes)))
        kept = []
        for some in np.array_split(codes, max(1, min(parts, len(codes)))):
            rows = self._database.in_ranges(self._key[0], self._asked, some[:1], some[-1:], max_bytes)
            found = self._codec.encode([rows.column(self._key_places[0])]).codes
            at = np.minimum(np.searchsorted(some, found), len(some) - 1)
            wanted = some[at] == found
            kept.append(rows if wanted.all() else rows.filter(pa.array(wanted)))
            max_bytes -= kept[-1].nbytes
        return kept[0] if len(kept) == 1 else pa.concat_batches(kept)

    def look_up_keys(self, codes: Int64Array, keys: AskedKeys) -> FoundRows:
        """Return the rows of the codes, or of the first of them whose rows fit; by queries for sets of keys."""

        def ask(first: int, last: int, max_bytes: int) -> pa.RecordBatch:
            values = keys.between(first, last)
            if last > first + 1 and sum(column.nbytes for column in values) > _MAX_ASKED_BYTES:
                middle = (first + last) // 2
                rows = ask(first, middle, max_bytes)
                return pa.concat_batches([rows, ask(middle, last, max_bytes - rows.nbytes)])
            return self._database.of_keys(self._key, self._asked, values, max_bytes)

        return self._found(codes, ask)

    def _found(self, codes: Int64Array, ask: _Ask) -> FoundRows:
        taken: list[list[pa.Array]] = [[] for _ in self._columns]
        sizes: list[Int64Array] = []
        held_bytes = done = 0
        is_full = False
        while done < len(codes) and not is_full:
            answered, is_full = self._round(ask, done, len(codes), self._max_bytes - held_bytes)
            for last, rows in answered:
                sizes.append(self._in_order(rows, codes[done:last], taken))
                held_bytes += rows.nbytes
                done = last
            answered.clear()
            is_full |= held_bytes + self._query_bytes > self._max_bytes
        bounds = np.concatenate(([0], np.cumsum(np.concatenate(sizes)))).astype(np.int64)
        del rows
        columns = []
        for arrays in taken:  # so that no more than one column is there twice
            columns.append(found_column(arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)))
            arrays.clear()
        return FoundRows(bounds, tuple(columns), done)

    def _round(self, ask: _Ask, first: int, end: int, room_bytes: int) -> tuple[list[tuple[int, pa.RecordBatch]], bool]:
        """Ask some queries side by side; return where each ends and its rows, up to the first that brings too much.

        And whether that is a single key, for whose rows there is no room now.
        """
        queries = max(1, min(self._connections, room_bytes // self._query_bytes))
        expected = int(_MARGIN * self._query_bytes / self._row_bytes)
        step = max(1, min(self._step, expected, max(_MIN_KEYS, -(-(end - first) // queries))))
        lasts = [min(end, start + step) for start in range(first, end, step)][:queries]
        answers = self._side_by_side(ask, [first, *lasts[:-1]], lasts)
        self.read_requests += len(answers)
        taken: list[tuple[int, pa.RecordBatch]] = []
        for start, last, answer in zip([first, *lasts[:-1]], lasts, answers, strict=True):
            rows = answer
            if isinstance(rows, ResultTooLargeError):
                self._step = max(1, step // _FEWER)
                if last > start + 1:
                    break
                rows = self._of_one_key(ask, start, room_bytes, is_first=not start)
                if rows is None:
                    return taken, True
            else:
                self._step = min(_MAX_KEYS, _MORE * max(step, self._step))
                if rows.num_rows:
                    self._row_bytes = max(1.0, rows.nbytes / (last - start))
            self.bytes_read += rows.nbytes
            room_bytes -= rows.nbytes
            taken.append((last, rows))
        return taken, False

    def _side_by_side(
        self, ask: _Ask, firsts: Sequence[int], lasts: Sequence[int]
    ) -> list[pa.RecordBatch | ResultTooLargeError]:
        def answer(first: int, last: int) -> pa.RecordBatch | ResultTooLargeError:
            try:
                return ask(first, last, self._query_bytes)
            except ResultTooLargeError as error:
                return error

        if len(firsts) == 1:
            return [answer(firsts[0], lasts[0])]
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._connections - 1, thread_name_prefix="semistream-database")
        others = [self._threads.submit(answer, first, last) for first, last in zip(firsts[1:], lasts[1:], strict=True)]
        return [answer(firsts[0], lasts[0]), *(other.result() for other in others)]

    def _of_one_key(self, ask: _Ask, code: int, room_bytes: int, *, is_first: bool) -> pa.RecordBatch | None:
        """Return the rows of a key that take more than one query may bring; None if there is no room for them now."""
        self.read_requests += 1
        try:
            return ask(code, code + 1, room_bytes // 2)
        except ResultTooLargeError as error:
            if not is_first:
                return None
            raise RowTooLargeError(
                f"The rows of one key of the table {self._table_name!r} take at least "
                f"{format_bytes(error.size_bytes)}, more than the {format_bytes(room_bytes // 2)} that they may: give "
                f"at least about {format_bytes_up(_MEMORY_SHARE * error.size_bytes)} of memory, or name fewer columns."
            ) from None

    def _in_order(self, rows: pa.RecordBatch, codes: Int64Array, taken: list[list[pa.Array]]) -> Int64Array:
        """Take the rows of some codes, code after code, and return how many each has."""
        found = self._codec.encode([rows.column(place) for place in self._key_places]).codes
        order = None
        if (found[1:] < found[:-1]).any():
            order = np.argsort(found, kind="stable")
            found = found[order]
        starts = np.searchsorted(found, codes, side="left")
        counts = (np.searchsorted(found, codes, side="right") - starts).astype(np.int64)
        if counts.sum() < len(found):  # rows of other keys, which the database takes for the same
            chosen = np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
            order = chosen if order is None else order[chosen]
        for place, arrays in enumerate(taken):
            column = rows.column(place)
            arrays.append(column if order is None else column.take(pa.array(order)))
        return counts
