"""Answers a chunk of stream rows at once: from the cache, and by one pass over the pages that the others need."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from resource import RUSAGE_THREAD, getrusage

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int32Array, Int64Array
from semistream.core.stats import JoinStats
from semistream.engine.cache.cache_stage import NO_PAGE_GROUPS, CacheStage
from semistream.engine.reading.fetched_ahead import FetchedAhead
from semistream.engine.reading.misses import ChunkKeys, Misses, only_array
from semistream.engine.reading.page_look_up import PageRowReader
from semistream.engine.rows.merged_rows import NOWHERE, MergedRows, found_place
from semistream.engine.rows.row_sizes import cuts
from semistream.store.contract import MasterStore
from semistream.store.found_rows import AskedKeys, FoundRows, RowReader, no_rows_found

_ROW_BYTES = 64
"""What it takes to compare two keys, besides the bytes of texts."""
_ABSENT_AT_ONCE = 4096


@dataclass(frozen=True)
class ChunkAnswers:
    """Where the master rows of a chunk of stream rows are."""

    places: Int64Array
    """The place of the first master row of each stream row."""
    counts: Int64Array | None
    """How many master rows each has, place after place; None if none has several."""
    refused: BoolArray | None
    """Rows that need a page that is too large to read; None if there are none."""
    largest_refused_bytes: int
    """The largest of these pages."""
    rows: MergedRows
    misses: Misses
    looked_up: FoundRows
    """The rows of the codes of `misses`, of those on pages that may be read."""
    readable: Int64Array | None
    """Which codes of `misses` these are; None for all."""
    is_probed: bool
    """Whether the cache was asked; one that is sampled is not always."""
    keys: AskedKeys | None
    """The keys of the codes of `misses`, if the store was asked by them."""


@dataclass(frozen=True)
class TooManyRows:
    """The master rows of a chunk take more memory than they may."""

    share: float
    """About which part of the chunk could have been answered."""


class ChunkLookUp:
    """Looks up the master rows of chunks of codes; a page is read once for a chunk, whoever needs it.

    The rows of a chunk that are not cached take at most about `found_bytes`. The cache learns from a chunk what it
    would learn from a read that answers as many tuples; copies for it take at most about `piece_bytes` at a time.
    """

    def __init__(
        self,
        store: MasterStore,
        cached: CacheStage | None,
        columns: pa.Schema,
        stats: JoinStats,
        *,
        found_bytes: int,
        read_bytes: int,
        largest_page_bytes: int,
        piece_bytes: int,
    ) -> None:
        self._store = store
        self._cached = cached
        self._columns = columns
        self._stats = stats
        self._largest_page_bytes = largest_page_bytes
        self._piece_bytes = piece_bytes
        self._reader = store.row_reader(columns.names, found_bytes, read_bytes) or PageRowReader(
            store, columns.names, max_bytes=found_bytes, read_bytes=read_bytes
        )
        self._nothing = no_rows_found(columns)
        self._is_single = store.unique and store.codec.exact
        self.needs_keys = not store.capabilities.pages
        """Whether the store finds rows by keys, and not by codes."""
        self._key_columns = [columns.get_field_index(name) for name in store.key] if self.needs_keys else []
        self._ahead: FetchedAhead | None = None
        self._max_ahead_codes = 1 << 40
        self.missed_tuples = 0
        """Tuples whose codes had to be looked up in the master table."""
        self.waited_seconds = 0.0
        """Of the latest look-up that read, the time in which it waited for a disk or a server."""
        self.worked_seconds = 0.0
        """The rest of it."""

    def answer(
        self, codes: Int64Array, usable: BoolArray | None, keys: ChunkKeys | None = None
    ) -> ChunkAnswers | TooManyRows:
        """Find the master rows of codes, of which only the usable ones can have any; by their keys, if that is needed.

        A store that is asked by key knows nothing of other keys of the same code. So what is cached answers only rows
        of the very key that it was cached for, and all others are asked for.
        """
        cached = self._cached if self._cached is not None and self._cached.decide_to_look() else None
        places = np.full(len(codes), NOWHERE, dtype=np.int64)
        if cached is None:
            slots = None
            missing = np.arange(len(codes)) if usable is None else np.flatnonzero(usable)
        else:
            slots = cached.probe(codes, NO_PAGE_GROUPS)
            if keys is not None:
                self._forget_other_keys(cached, slots, usable, keys)
            missing = np.flatnonzero(slots < 0 if usable is None else (slots < 0) & usable)
        misses = Misses.of(codes, missing)
        pages = self._store.locate(misses.codes)
        readable, largest_refused = self._readable(pages)
        asked = misses.codes if readable is None else misses.codes[readable]
        asked_keys = misses.keys(keys) if keys is not None and len(asked) else None
        looked_up = self._ahead.rows_of(asked) if self._ahead is not None else None
        if looked_up is None:
            self._ahead = None  # its memory is that of the next rows
            looked_up = self._looked_up(asked, pages if readable is None else pages[readable], asked_keys)
        if looked_up.code_count < len(asked):
            return TooManyRows(looked_up.code_count / len(asked))
        if cached is not None and slots is not None:
            self._use(cached, slots, usable, places)
        counts, refused = self._place(places, misses, looked_up, readable)
        rows = MergedRows(self._columns, cached.rows if cached is not None else None, looked_up.columns)
        self._stats.iterations += 1
        self.missed_tuples += len(misses.rows)
        return ChunkAnswers(
            places, counts, refused, largest_refused, rows, misses, looked_up, readable, cached is not None, asked_keys
        )

    def fetch_ahead(self, codes: Int64Array, usable: BoolArray | None) -> None:
        """Read what codes need before `answer` is asked for some of them; nothing if it takes more than it may.

        May be called from another thread while nobody else uses the object, and not while answers are in use.
        """
        self._ahead = None
        if self.needs_keys:
            return
        missing = np.ones(len(codes), dtype=np.bool_) if usable is None else usable
        if self._cached is not None and not self._cached.is_sampled:
            missing = missing & (self._cached.probe(codes, NO_PAGE_GROUPS) < 0)
        asked = np.unique(codes[missing])
        pages = self._store.locate(asked)
        readable, _ = self._readable(pages)
        if readable is not None:
            asked, pages = asked[readable], pages[readable]
        if not len(asked) or len(asked) > self._max_ahead_codes:
            return
        found = self._looked_up(asked, pages, None)
        if found.code_count < len(asked):
            self._max_ahead_codes = found.code_count
            return
        self._ahead = FetchedAhead(asked, found)

    def forget_ahead(self) -> None:
        """Drop what was read ahead."""
        self._ahead = None

    def learn(self, answers: ChunkAnswers) -> None:
        """Let the cache admit what is worth it; the places of the chunk are void afterwards."""
        cached, misses = self._cached, answers.misses
        if cached is None:
            return
        if len(misses.codes):
            readable = answers.readable
            codes = misses.codes if readable is None else misses.codes[readable]
            asks = (misses.asks if readable is None else misses.asks[readable]).astype(np.int32)
            firsts, sizes = answers.looked_up.firsts, answers.looked_up.row_counts

            def take(chosen: Int64Array) -> Iterator[tuple[Int64Array, pa.RecordBatch | None]]:
                if not len(self._columns):
                    yield chosen, None
                    return
                places = found_place(firsts[chosen])
                for start, end in cuts(answers.rows.row_bytes(places), len(chosen), self._piece_bytes):
                    arrays = answers.rows.take(places[start:end])
                    yield chosen[start:end], pa.RecordBatch.from_arrays(arrays, schema=self._columns)

            asked_keys = answers.keys
            if asked_keys is None:
                cached.learn(codes, asks, sizes, take)
            else:
                cached.learn(codes, asks, sizes, take, lambda chosen: self._absent_rows(asked_keys, chosen))
        if answers.is_probed:
            cached.arrived(len(answers.places))

    def _forget_other_keys(
        self, cached: CacheStage, slots: Int32Array, usable: BoolArray | None, keys: ChunkKeys
    ) -> None:
        """Let rows count as missing whose slots were filled for another key of the same code."""
        held = cached.rows
        assert held is not None, "keys are cached"
        hits = np.flatnonzero(slots >= 0 if usable is None else (slots >= 0) & usable)
        of_hits = slots[hits].astype(np.int64)
        for start, end in cuts(held.variable_bytes(of_hits) + _ROW_BYTES, len(hits), self._piece_bytes):
            theirs = held.take(of_hits[start:end], self._key_columns).columns
            same = self._store.codec.same_key(keys.take(hits[start:end]), theirs)
            slots[hits[start:end][~same]] = -1

    def _absent_rows(self, keys: AskedKeys, chosen: Int64Array) -> Iterator[tuple[Int64Array, pa.RecordBatch]]:
        """Yield rows of nothing but a key, of which it will be known that the master table does not have it."""
        for start in range(0, len(chosen), _ABSENT_AT_ONCE):
            some = chosen[start : start + _ABSENT_AT_ONCE]
            arrays = [pa.nulls(len(some), field.type) for field in self._columns]
            for place, values in zip(self._key_columns, keys.columns, strict=True):
                of_some = only_array(values.take(pa.array(keys.bounds[some])))
                if pa.types.is_dictionary(of_some.type):
                    of_some = of_some.dictionary_decode()
                arrays[place] = of_some.cast(self._columns.field(place).type, safe=False)
            yield some, pa.RecordBatch.from_arrays(arrays, schema=self._columns)

    def _looked_up(self, codes: Int64Array, pages: Int32Array, keys: AskedKeys | None) -> FoundRows:
        if not len(codes):
            return self._nothing
        reader, stats = self._reader, self._stats
        before = (reader.page_reads, reader.read_requests, reader.bytes_read)
        began, worked, switches = time.perf_counter(), time.thread_time(), _times_waited()
        looked_up = _rows_on_pages(reader, codes, pages) if keys is None else reader.look_up_keys(codes, keys)
        self.worked_seconds, took = time.thread_time() - worked, time.perf_counter() - began
        # A thread that has not waited by itself was only kept from the processor by others.
        self.waited_seconds = took - self.worked_seconds if _times_waited() > switches else 0.0
        stats.read_seconds += took
        stats.page_reads += reader.page_reads - before[0]
        stats.read_requests += reader.read_requests - before[1]
        stats.bytes_read += reader.bytes_read - before[2]
        return looked_up

    def _readable(self, pages: Int32Array) -> tuple[Int64Array | None, int]:
        """Return which codes are on pages that are not too large to read, None if all are, and the largest other."""
        if self.needs_keys or self._store.largest_page_bytes <= self._largest_page_bytes or not len(pages):
            return None, 0
        distinct, of_each = np.unique(pages, return_inverse=True)
        sizes = np.array([self._store.range_bytes(page, page) for page in distinct.tolist()])
        readable = (sizes <= self._largest_page_bytes)[of_each]
        return (None, 0) if readable.all() else (np.flatnonzero(readable), int(sizes.max()))

    def _use(self, cached: CacheStage, slots: Int32Array, usable: BoolArray | None, places: Int64Array) -> None:
        """Put the places of rows that are cached."""
        hits = np.flatnonzero(slots >= 0 if usable is None else (slots >= 0) & usable)
        of_hits = slots[hits].astype(np.int64)
        absent = cached.count_use(of_hits)
        places[hits] = of_hits if not absent else np.where(cached.is_absent(of_hits), NOWHERE, of_hits)
        self._stats.cache_hits += len(hits) - absent
        self._stats.absent += absent

    def _place(
        self, places: Int64Array, misses: Misses, looked_up: FoundRows, readable: Int64Array | None
    ) -> tuple[Int64Array | None, BoolArray | None]:
        """Put the places of rows that were found; return how many rows each has, and which are refused."""
        sizes = looked_up.row_counts
        of_codes = np.where(sizes > 0, found_place(looked_up.firsts), NOWHERE)
        refused = None
        if readable is not None:
            of_readable, readable_sizes = of_codes, sizes
            of_codes = np.full(len(misses.codes), NOWHERE, dtype=np.int64)
            sizes = np.zeros(len(misses.codes), dtype=np.int64)
            of_codes[readable], sizes[readable] = of_readable, readable_sizes
            is_refused = np.ones(len(misses.codes), dtype=np.bool_)
            is_refused[readable] = False
            refused = np.zeros(len(places), dtype=np.bool_)
            refused[misses.rows] = np.repeat(is_refused, misses.asks)
            self._stats.refused += int(misses.asks[is_refused].sum())
            self._stats.absent -= int(misses.asks[is_refused].sum())
        places[misses.rows] = np.repeat(of_codes, misses.asks)
        hits = int(misses.asks[sizes > 0].sum())
        self._stats.read_hits += hits
        self._stats.absent += len(misses.rows) - hits
        if self._is_single or not (sizes > 1).any():
            return None, refused
        counts = (places != NOWHERE).astype(np.int64)
        counts[misses.rows] = np.repeat(sizes, misses.asks)
        return counts, refused


def _rows_on_pages(reader: RowReader, codes: Int64Array, pages: Int32Array) -> FoundRows:
    """Look codes up in the order of their pages, which is not that of the codes in a table that is ordered by use."""
    if (pages[1:] >= pages[:-1]).all():
        return reader.look_up(codes, pages)
    order = np.argsort(pages, kind="stable")
    found = reader.look_up(codes[order], pages[order])
    if found.code_count < len(codes):
        return found
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return replace(found, chosen=places)


def _times_waited() -> int:
    """Return how often this thread has given the processor up so far, to wait for something."""
    return getrusage(RUSAGE_THREAD).ru_nvcsw
