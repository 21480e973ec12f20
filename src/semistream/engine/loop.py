"""The one join loop: take stream tuples in, read a partition of the master table, let answered tuples leave."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.clock import ModelClock
from semistream.core.costs import NO_COSTS, Operations
from semistream.engine.arrivals import split_arrivals
from semistream.engine.cache_stages import CacheStage
from semistream.engine.deadline import Deadline
from semistream.engine.loop_parts import LoopParts
from semistream.engine.matching import match
from semistream.engine.output import Output
from semistream.engine.read_ahead import ReadAhead
from semistream.engine.stream_input import Chunk, StreamInput
from semistream.engine.waiting import Drained
from semistream.engine.waits import Waits
from semistream.store.contract import PageSet

_NONE = np.empty(0, dtype=np.int64)
_ANY = 2**62


class JoinLoop:
    """Runs one join: which page comes next, what is cached and when tuples enter is decided by its policies.

    A round is a stream phase, in which tuples enter until `intake` says it is enough or no input is there, and a disk
    phase, in which one choice of partitions is read and every waiting tuple they answer leaves. A tuple whose partition
    has been read leaves whether or not it has matched, so an absent key never asks twice. With `finish_bytes`, what
    still waits when the input has ended is not left to the page choice: just the pages that are needed are read, in the
    order of the table and so many bytes at a time.
    """

    def __init__(self, stream: StreamInput, parts: LoopParts) -> None:
        self.waiting = parts.waiting
        self.stats = parts.stats
        self.clock = parts.clock
        self._stream = stream
        self._reader = parts.reader
        self._ahead = ReadAhead(
            parts.reader, parts.clock, in_flight=parts.in_flight, reads=parts.reads_ahead, costs=parts.read_costs
        )
        self._read_costs = parts.read_costs
        self._choice = parts.choice
        self._intake = parts.intake
        self._cache = parts.cache
        self._output = parts.output
        self._rows = parts.stream_rows
        self._finish_bytes = parts.finish_bytes
        self._run_bytes = parts.run_bytes
        self._runs: deque[Int64Array] = deque()
        """What the page choice has chosen and is yet to be read."""
        self._balance = parts.balance
        deadline_seconds = parts.choice.deadline_seconds
        self._deadline = Deadline(deadline_seconds, parts.waiting, parts.clock) if deadline_seconds else None
        self._costs = parts.clock.costs if isinstance(parts.clock, ModelClock) else NO_COSTS
        self._chunk: Chunk | None = None
        self._used = 0
        self._taken = 0
        self._finishing = 0
        self._fitting = _ANY
        """How many of the next tuples may be taken, as far as the bytes of their rows are concerned."""
        self._silent = False
        self.pausing = False
        """Whether the loop is about to wait for input: what it has answered should be handed out first."""
        self._hit_rate = 0.0
        self._waits = Waits(parts.clock, parts.stats)

    def rounds(self) -> Generator[None]:
        """Run the join and yield after each round, until the input has ended and every tuple has left."""
        self._load_cache()
        while True:
            self._take_in()
            if self._may_read():
                if self._finishes:
                    yield from self._finish()
                elif not self._read_round() and not self._has_input():
                    yield from self._pause()
            elif self._is_finished():
                return
            elif not self._has_input():
                yield from self._pause()
            yield

    def _load_cache(self) -> None:
        if self._cache is not None and not self._cache.loaded:
            self._cache.load(self._reader)
            self._cache.loaded = True

    def _pause(self) -> Iterator[None]:
        """Wait for input, after what has been answered so far could be handed out."""
        self.pausing = True
        yield
        self.pausing = False
        self._wait_for_input()

    @property
    def idle(self) -> bool:
        """Whether there was no input when last asked for, so that finished rows should not be held back for more."""
        return self._silent

    def close(self) -> None:
        """Stop the input; the loop must not be used afterwards."""
        self._stream.close()
        self._ahead.close()

    # The stream phase.

    def _take_in(self, limit_seconds: float = float("inf")) -> None:
        """Let tuples enter until the intake has no room, the input is silent, or the time or a chunk is used up."""
        while limit_seconds > 0 and not self._is_output_due and (room := self._room()) > 0 and self._has_input():
            self._fitting = self._count_fitting()
            if not self._fitting:
                return
            limit_seconds -= self._take_some(min(room, self._fitting), limit_seconds)
            if self._chunk is None and limit_seconds == float("inf"):
                return  # so that a stream that is answered at once does not hold up its own output

    def _room(self) -> int:
        if not self.waiting.count:
            self._taken = 0  # all that were taken have left without a read
        room = self._intake.room(self.waiting, self._taken)
        return room if self._rows is None else min(room, self._rows.free_slots)

    @property
    def _is_output_due(self) -> bool:
        return self._output is not None and self._output.is_due

    def _count_fitting(self) -> int:
        """Return how many of the next tuples of the chunk have room for the bytes of their rows."""
        rows, chunk = self._rows, self._chunk
        if rows is None or chunk is None or not chunk.variable_bytes:
            return _ANY
        free_bytes = rows.free_bytes(chunk.variable_bytes)
        if free_bytes >= chunk.variable_bytes:
            return _ANY
        fitting = chunk.count_within(self._used, free_bytes, rows.sizes)
        rows.lacks_bytes = not fitting
        return fitting

    @property
    def _inside(self) -> int:
        return self.waiting.count + self._finishing

    def _has_input(self) -> bool:
        if self._chunk is None:
            self._chunk, self._used = self._stream.poll(), 0
            self._silent = self._chunk is None
            if self._chunk is not None:
                self._start(self._chunk)
        return self._chunk is not None and self._available(self._chunk) > self._used

    def _wait_for_input(self) -> None:
        if self._chunk is not None and self._chunk.arrival_seconds is not None:
            self.clock.sleep_until(float(self._chunk.arrival_seconds[self._used]))
        else:
            self._stream.wait()

    def _available(self, chunk: Chunk) -> int:
        if chunk.arrival_seconds is None:
            return len(chunk.codes)
        return int(np.searchsorted(chunk.arrival_seconds, self.clock.now(), side="right"))

    def _start(self, chunk: Chunk) -> None:
        """Let the tuples leave that no master row can match, and those that are too large."""
        nulls, unmatchable = len(chunk.null_rows), len(chunk.unmatchable_rows)
        refused = sum(len(rows) for rows, _ in chunk.refusals)
        stats = self.stats
        with self._waits.lock:
            stats.tuples_in += nulls + unmatchable + refused
            stats.tuples_out += nulls + unmatchable + refused
            stats.null_keys += nulls
            stats.absent += unmatchable
            stats.refused += refused
        if self._output is not None and chunk.batch is not None:
            self._output.unmatched_on_arrival(chunk.batch, chunk.null_rows)
            self._output.unmatched_on_arrival(chunk.batch, chunk.unmatchable_rows)
            for rows, reason in chunk.refusals:
                self._output.refused(chunk.batch, rows, reason)
        if not self._reader.partition_count:
            self._leave_absent(chunk)
        if not len(chunk.codes):
            self._chunk = None

    def _leave_absent(self, chunk: Chunk) -> None:
        """An empty master table has no key."""
        self.stats.tuples_in += len(chunk.codes)
        self._leave(len(chunk.codes), absent=len(chunk.codes))
        if self._output is not None and chunk.batch is not None:
            self._output.unmatched_on_arrival(chunk.batch, chunk.rows)
        chunk.codes = chunk.codes[:0]

    def _take_some(self, room: int, limit_seconds: float) -> float:
        """Take a slice of the chunk in; return the seconds charged."""
        chunk = self._chunk
        assert chunk is not None
        cache = self._cache if self._cache is not None and self._cache.looks() else None
        wanted = room if cache is None else self._wanted(room)
        end = min(self._available(chunk), self._used + min(wanted, self._fitting))
        codes, partitions = chunk.codes[self._used : end], chunk.partitions[self._used : end]
        rows = chunk.rows[self._used : end]
        before = self.clock.now()
        costs = self._costs
        hits = 0
        if cache is None:
            consumed = min(len(codes), room)
            self._enter(chunk, codes[:consumed], partitions[:consumed], rows[:consumed])
            entered = consumed
            self._waits.arrive(chunk, self._used, consumed)
        else:
            hit_seconds = costs.take_seconds + costs.probe_seconds + costs.output_seconds
            miss_seconds = costs.take_seconds + costs.probe_seconds + self._enter_seconds
            with cache.guard:
                slots = cache.probe(codes, partitions)
                of_hits, misses, consumed = split_arrivals(slots, room, limit_seconds, hit_seconds, miss_seconds)
                if self._output is not None and len(of_hits) > 1:
                    of_hits, misses, consumed = self._cut(
                        cache, self._output, chunk, rows, slots, of_hits, misses, consumed
                    )
                absent = self._answer_from_cache(cache, chunk, codes, rows, slots, of_hits)
                cache.arrived(consumed)
            if len(misses):
                self._enter(chunk, codes[misses], partitions[misses], rows[misses])
            hits, entered = len(of_hits), len(misses)
            self._hit_rate += (hits / consumed - self._hit_rate) * 0.2
            self._waits.arrive(chunk, self._used, consumed)
            self._leave(hits, absent=absent, cache_hits=hits - absent)
        self.stats.tuples_in += consumed
        self._taken += consumed
        self._used += consumed
        operations = Operations(takes=consumed, probes=consumed if cache is not None else 0, outputs=hits)
        self._count_entered(operations, entered)
        self.clock.charge(operations)
        if self._used == len(chunk.codes):
            self._chunk = None
        return costs.seconds(operations) if isinstance(self.clock, ModelClock) else self.clock.now() - before

    def _wanted(self, room: int) -> int:
        """Return how many tuples to look for in the cache, so that about as many miss as there is room for."""
        wanted = room / max(0.02, 1.0 - self._hit_rate)
        if self._output is not None:
            hits = self._output.room_bytes / self._output.mean_row_bytes
            wanted = min(wanted, hits / max(0.02, self._hit_rate))
        return max(0, int(wanted * 1.05)) + 16

    def _cut(
        self,
        cache: CacheStage,
        output: Output,
        chunk: Chunk,
        rows: Int64Array,
        slots: Int32Array,
        hits: Int64Array,
        misses: Int64Array,
        consumed: int,
    ) -> tuple[Int64Array, Int64Array, int]:
        """Stop before the first hit whose output row has no room."""
        assert chunk.batch is not None
        each_bytes = output.arrival_bytes(chunk.batch, rows[hits])
        answerable = cache.answerable(slots[hits].astype(np.int64), each_bytes, output.room_bytes)
        if answerable >= len(hits):
            return hits, misses, consumed
        consumed = int(hits[answerable])
        return hits[:answerable], misses[: np.searchsorted(misses, consumed)], consumed

    def _answer_from_cache(
        self, cache: CacheStage, chunk: Chunk, codes: Int64Array, rows: Int64Array, slots: Int32Array, hits: Int64Array
    ) -> int:
        """Answer the tuples at `hits`; return how many of them are absent."""
        if not len(hits):
            return 0
        return cache.answer(codes[hits], chunk, rows[hits], slots[hits].astype(np.int64), self._output)

    @property
    def _enter_seconds(self) -> float:
        return self._costs.append_seconds

    def _count_entered(self, operations: Operations, count: int) -> None:
        operations.appends = count

    def _enter(self, chunk: Chunk, codes: Int64Array, partitions: Int32Array, rows: Int64Array) -> None:
        added = self.waiting.add(codes, partitions, self._references(chunk, rows))
        assert added == len(codes), "the intake gave more room than there is"

    def _references(self, chunk: Chunk, rows: Int64Array) -> Int64Array:
        """Return what leads back to waiting tuples: the slots of their rows, or their positions in the stream."""
        if self._rows is None or chunk.batch is None:
            return rows + chunk.first_position
        return self._rows.put(chunk.batch, rows, chunk.first_position)

    def _first_position(self, references: Int64Array) -> int:
        """Return the smallest position of some tuples inside."""
        if self._rows is None:
            return min(map(self._waits.position, references.tolist()))
        return int(self._rows.positions(references).min())

    # The disk phase.

    def _may_read(self) -> bool:
        if not self.waiting.count:
            return False
        return self._is_full_of_rows() or self._intake.ready(
            self.waiting, self._taken, available=self._has_input(), ended=self._stream.ended
        )

    def _is_full_of_rows(self) -> bool:
        """Say whether no row may enter although the queue has room, because slots or their bytes are used up."""
        return self._rows is not None and (not self._rows.free_slots or not self._count_fitting())

    def _read_round(self) -> bool:
        """Answer waiting tuples from pinned pages, then by one read as the page choice wants, if it wants one."""
        self._answer_from_pinned()
        partitions = _NONE
        if self.waiting.count:
            if self._deadline is not None:
                self._choice.overdue_before = self._deadline.overdue_before()
            if self._runs:
                partitions = self._runs.popleft()
            else:
                partitions = self._choice.choose(self.waiting, input_pending=self._is_input_pending())
            if self._choice.merges:
                self._read_runs(partitions)
            elif self._is_readable(partitions):
                pages = self._reader.read(partitions, sequential=self._choice.sequential)
                self._probe(partitions, pages)
        self._end_round()
        return len(partitions) > 0 or not self.waiting.count

    def _is_input_pending(self) -> bool:
        return not self._is_full_of_rows() and (not self._stream.ended or self._has_input())

    def _end_round(self) -> None:
        self._taken = 0
        if self._balance is not None:
            self._balance.after_round()
        if not self.waiting.count and self._cache is not None:
            self._cache.after_batch(self.waiting)

    def _read_runs(self, partitions: Int64Array) -> None:
        """Read runs of partitions, but for those that are too large to read, for which no tuple waits.

        If they are more than a read may bring, only the first of them; the others are read in the next rounds.
        """
        first, *later = self._cut_run(partitions)
        self._runs.extend(later)
        if len(first):
            self._read_run(first)

    def _cut_run(self, partitions: Int64Array) -> list[Int64Array]:
        partitions = self._without_unreadable(partitions)
        return self._reader.partitions.within(partitions, self._run_bytes) if self._run_bytes else [partitions]

    def _read_run(self, partitions: Int64Array) -> None:
        following = list(self._runs)
        if len(following) < self._ahead.reads:
            planned = self._choice.following(self._ahead.reads)
            following += [part for some in planned for part in self._cut_run(some) if len(part)]
        pages, starts = self._ahead.read(partitions, following[: self._ahead.reads])
        if self._deadline is not None:
            count, longest_seconds = self._deadline.waits_of(partitions)
            self._intake.answered(count, longest_seconds, self.waiting)
        drained = self.waiting.drain(partitions)
        by_run = Drained(drained.codes, drained.references, drained.bounds[np.append(starts, len(partitions))])
        self._join_pages(partitions[starts], pages, by_run, whole=False)
        if self._read_costs is not None:
            request_seconds, byte_seconds = self._read_costs.costs
            self._choice.learn_costs(request_seconds, byte_seconds * self._reader.mean_partition_bytes)

    def _without_unreadable(self, partitions: Int64Array) -> Int64Array:
        unreadable = self._reader.partitions.unreadable(partitions)
        return partitions if unreadable is None else partitions[~unreadable]

    @property
    def _finishes(self) -> bool:
        return self._finish_bytes > 0 and not self._has_input() and self._chunk is None and self._stream.ended

    def _finish(self) -> Iterator[None]:
        """Answer all that wait, by reads of just the pages that they need, and yield after each."""
        self._answer_from_pinned()
        self._runs.clear()
        self._finishing = self.waiting.count
        drained = self.waiting.drain(np.flatnonzero(self.waiting.counts))
        across = self._choice.merges
        for partitions, pages, needing in self._reader.read_demanded(drained, self._finish_bytes, across=across):
            self._join_pages(partitions, pages, needing, whole=False)
            self._finishing -= len(needing.codes)
            del pages  # so that the next read has its memory
            yield
        self._end_round()

    def _is_readable(self, partitions: Int64Array) -> bool:
        """Say whether there is something to read; only a ring ever asks for what is too large to read."""
        unreadable = self._reader.partitions.unreadable(partitions)
        return len(partitions) > 0 and (unreadable is None or not unreadable.any())

    def _answer_from_pinned(self) -> None:
        if self._cache is None or self._cache.probes_on_arrival:
            return
        self.clock.charge(Operations(probes=self._cache.probed_rows()))
        for drained, pages in self._cache.answer_waiting(self.waiting):
            self._answer(drained, pages, from_cache=True)

    def _probe(self, partitions: Int64Array, pages: PageSet) -> None:
        """Join pages with all tuples that wait for them."""
        self._join_pages(partitions, pages, self.waiting.drain(partitions), whole=True)

    def _join_pages(self, partitions: Int64Array, pages: PageSet, drained: Drained, *, whole: bool) -> None:
        cache, probed = self._cache, len(pages.codes)
        counted = cache is not None and cache.counts_frequencies
        self.clock.charge(Operations(probes=probed, frequency_checks=probed if counted else 0))
        rows = self._answer(drained, pages, from_cache=False)
        if cache is not None:
            with cache.guard:
                cache.after_read(partitions, pages, drained, rows, self.waiting, whole=whole)
        if whole:
            bounds = drained.bounds.tolist()
            for index, partition in enumerate(partitions.tolist()):
                self._choice.after_read(partition, bounds[index + 1] - bounds[index], self.waiting)
        self.stats.iterations += 1

    def _answer(self, drained: Drained, pages: PageSet, *, from_cache: bool) -> Int64Array:
        count = len(drained.codes)
        rows, found = match(pages.codes, pages.bounds, drained.codes, drained.bounds)
        self.clock.charge(Operations(outputs=count, removals=count))
        if from_cache:
            self.stats.cache_hits += found
        else:
            self.stats.read_hits += found
        if count:
            starts = drained.bounds[:-1]
            firsts = drained.references[starts[starts < drained.bounds[1:]] if len(starts) > 1 else starts]
            self._waits.oldest_left(self._first_position(firsts))
            self._leave(count, absent=count - found)
            if self.waiting.count:
                self._waits.forget_before(self._first_position(np.array([self.waiting.oldest_reference()])))
            if self._output is not None:
                self._output.answered(drained.references, pages, rows)
        return rows

    def _leave(self, count: int, *, absent: int, cache_hits: int = 0) -> None:
        with self._waits.lock:
            self.stats.tuples_out += count
            self.stats.absent += absent
            self.stats.cache_hits += cache_hits
            self._waits.leave(count)

    def _is_finished(self) -> bool:
        return not self._inside and not self._has_input() and self._chunk is None and self._stream.ended
