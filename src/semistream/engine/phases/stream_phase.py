"""The stream phase: tuples come in, and the cache answers what it can."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.core.costs import NO_COSTS
from semistream.engine.cache.cache_stage import NO_PAGE_GROUPS, CacheStage
from semistream.engine.loop_parts import LoopParts
from semistream.engine.output.output import Output
from semistream.engine.phases.arrivals import split_arrivals
from semistream.engine.phases.entrance import Entrance
from semistream.engine.phases.handover import Handover
from semistream.engine.phases.stream_input import Chunk, StreamInput
from semistream.engine.waiting.waits import Waits

_ANY = 2**62


class StreamPhase:
    """Takes tuples in: what no master row can match leaves at once, what is cached is answered, the rest enters.

    `handover` is the entrance, if that takes tuples which nobody has looked for in the cache.
    """

    def __init__(
        self, stream: StreamInput, parts: LoopParts, entrance: Entrance, waits: Waits, handover: Handover | None = None
    ) -> None:
        self._stream = stream
        self._entrance = entrance
        self._handover = handover
        self._waits = waits
        self._clock = parts.clock
        self._stats = parts.stats
        self._cache = parts.cache
        self._output = parts.output
        self._rows = parts.stream_rows
        self._has_master_rows = parts.reader.page_group_count > 0
        self._locate = parts.reader.locate
        model = parts.clock.model
        costs = model.costs if model is not None else NO_COSTS
        self._costs = costs
        self._entry_seconds = entrance.entry_seconds(costs)
        self._hit_seconds = costs.take_seconds + costs.probe_seconds + costs.output_seconds
        self._miss_seconds = costs.take_seconds + costs.probe_seconds + self._entry_seconds
        self._chunk: Chunk | None = None
        self._used = 0
        self._taken_before = 0
        """How many tuples had been taken when it last began to take some in."""
        self._hit_rate = 0.0
        self._is_silent = False
        self._is_pausing = False

    @property
    def is_silent(self) -> bool:
        """Whether there was no input when last asked for, so that finished rows should not be held back for more."""
        return self._is_silent

    @property
    def is_pausing(self) -> bool:
        """Whether it is about to wait for input: what has been answered should be handed out first."""
        return self._is_pausing

    @property
    def is_ended(self) -> bool:
        """Whether the input has ended and all of it has been taken."""
        return self._chunk is None and self._stream.ended

    @property
    def input_ended(self) -> bool:
        """Whether the input has ended."""
        return self._stream.ended

    def poll(self) -> bool:
        """Fetch the next chunk if there is none, and say whether a tuple is there to be taken."""
        if self._chunk is None:
            self._chunk, self._used = self._stream.poll(), 0
            self._is_silent = self._chunk is None
            if self._chunk is not None:
                self._start(self._chunk)
        return self._chunk is not None and self._available(self._chunk) > self._used

    def poll_pending(self) -> bool:
        """Say whether a tuple may still enter before others have left; looks for input if that depends on it."""
        return not self.note_full_rows() and (not self._stream.ended or self._chunk is not None or self.poll())

    def input_fill(self) -> int:
        """Return how many tuples were there when it last took some in: those it took, and those still there."""
        left = self._available(self._chunk) - self._used if self._chunk is not None else 0
        return self._stats.tuples_in - self._taken_before + left

    def pause(self) -> Iterator[None]:
        """Wait for input, after what has been answered so far could be handed out."""
        self._is_pausing = True
        yield
        self._is_pausing = False
        if self._chunk is not None and self._chunk.arrival_seconds is not None:
            self._clock.sleep_until(float(self._chunk.arrival_seconds[self._used]))
        else:
            self._stream.wait()

    def close(self) -> None:
        """Stop the input."""
        self._stream.close()

    def take_in(self, limit_seconds: float = float("inf")) -> None:
        """Let tuples enter until there is no room, the input is silent, or the time or a chunk is used up."""
        entrance, rows, output = self._entrance, self._rows, self._output
        self._taken_before = self._stats.tuples_in
        while limit_seconds > 0 and not (output is not None and output.is_due):
            room = entrance.room() if rows is None else min(entrance.room(), rows.free_slots)
            if room <= 0 or not self.poll() or not (fitting := self._fit_rows()):
                break
            limit_seconds -= self._take_slice(min(room, fitting), fitting, limit_seconds)
            if self._chunk is None and limit_seconds == float("inf"):
                break  # so that a stream that is answered at once does not hold up its own output
        if self._handover is not None:
            self._handover.note_room()

    def note_full_rows(self) -> bool:
        """Note whether the next row cannot enter for want of slots or bytes, which the output then frees; say so."""
        return self._rows is not None and (not self._rows.free_slots or not self._fit_rows())

    def _fit_rows(self) -> int:
        """Return how many of the next tuples of the chunk have room for the bytes of their rows; note if none has."""
        rows, chunk = self._rows, self._chunk
        if rows is None or chunk is None or not chunk.variable_bytes:
            return _ANY
        free_bytes = rows.free_bytes(chunk.variable_bytes)
        if free_bytes >= chunk.variable_bytes:
            return _ANY
        fitting = chunk.count_within(self._used, free_bytes, rows.sizes)
        rows.note_lack(lacks_bytes=not fitting)
        return fitting

    def _available(self, chunk: Chunk) -> int:
        if chunk.arrival_seconds is None:
            return len(chunk.codes)
        return int(np.searchsorted(chunk.arrival_seconds, self._clock.now(), side="right"))

    def _start(self, chunk: Chunk) -> None:
        """Let the tuples leave that no master row can match, and those that are too large."""
        self._waits.leave_on_arrival(chunk)
        if self._output is not None and chunk.batch is not None:
            self._output.unmatched_on_arrival(chunk.batch, chunk.null_rows)
            self._output.unmatched_on_arrival(chunk.batch, chunk.unmatchable_rows)
            for rows, reason in chunk.refusals:
                self._output.refused(chunk.batch, rows, reason)
        if not self._has_master_rows:
            self._leave_absent(chunk)
        if not len(chunk.codes):
            self._chunk = None

    def _leave_absent(self, chunk: Chunk) -> None:
        """An empty master table has no key."""
        self._stats.tuples_in += len(chunk.codes)
        self._waits.leave(len(chunk.codes), absent=len(chunk.codes))
        if self._output is not None and chunk.batch is not None:
            self._output.unmatched_on_arrival(chunk.batch, chunk.rows)
        chunk.codes = chunk.codes[:0]

    def _take_slice(self, room: int, fitting: int, limit_seconds: float) -> float:
        """Take a slice of the chunk in; return the seconds charged."""
        chunk = self._chunk
        assert chunk is not None
        if self._handover is not None and (spare := self._handover.spare_room()) > 0:
            return self._hand_over(chunk, self._handover, spare, limit_seconds)
        cache = self._cache if self._cache is not None and self._cache.decide_to_look() else None
        wanted = room if cache is None else self._wanted(room)
        end = min(self._available(chunk), self._used + min(wanted, fitting))
        codes, rows = chunk.codes[self._used : end], chunk.rows[self._used : end]
        page_groups = None if chunk.page_groups is None else chunk.page_groups[self._used : end]
        before = self._clock.now()
        if cache is None:
            consumed = min(len(codes), room)
            references = self._references(chunk, rows[:consumed])
            needed = self._locate(codes[:consumed]) if page_groups is None else page_groups[:consumed]
            self._entrance.enter(codes[:consumed], needed, references)
            self._waits.arrive(chunk, self._used, consumed)
            operations = self._entrance.count(consumed, consumed)
        else:
            with cache.guard:
                if page_groups is None and cache.needs_page_groups:
                    page_groups = self._locate(codes)
                slots = cache.probe(codes, NO_PAGE_GROUPS if page_groups is None else page_groups)
                of_hits, answered, misses, consumed = split_arrivals(
                    slots, room, limit_seconds, self._hit_seconds, self._miss_seconds
                )
                if self._output is not None and len(of_hits) > 1:
                    of_hits, answered, misses, consumed = self._cut(
                        cache, self._output, chunk, rows, of_hits, answered, misses, consumed
                    )
                needed = self._locate(codes[misses]) if page_groups is None else page_groups[misses]
                hits, absent = len(of_hits), 0
                if hits:
                    absent = cache.answer(codes, chunk, rows, of_hits, answered, self._output)
                if not chunk.has_waited:
                    cache.arrived(consumed, needed)
            if len(misses):
                self._entrance.enter(codes[misses], needed, self._references(chunk, rows[misses]))
            if not chunk.has_waited:
                self._hit_rate += (hits / consumed - self._hit_rate) * 0.2
            self._waits.arrive(chunk, self._used, consumed)
            self._waits.leave(hits, absent=absent, cache_hits=hits - absent)
            operations = self._entrance.count(consumed, len(misses))
            operations.probes, operations.outputs = consumed, hits
        self._use(chunk, consumed)
        self._clock.charge(operations)
        return self._costs.seconds(operations) if self._clock.model is not None else self._clock.now() - before

    def _use(self, chunk: Chunk, count: int) -> None:
        self._stats.tuples_in += count
        self._used += count
        if self._used == len(chunk.codes):
            self._chunk = None

    def _hand_over(self, chunk: Chunk, handover: Handover, max_count: int, limit_seconds: float) -> float:
        """Hand a slice of the chunk over without looking for it in the cache; return the seconds charged."""
        start = self._used
        each_seconds = self._costs.take_seconds + self._entry_seconds
        if each_seconds and limit_seconds < max_count * each_seconds:
            max_count = int(limit_seconds / each_seconds) + 1
        count = min(self._available(chunk) - start, max_count)
        chosen = slice(start, start + count)
        self._waits.arrive(chunk, start, count)
        references = self._references(chunk, chunk.rows[chosen])
        page_groups = self._locate(chunk.codes[chosen]) if chunk.page_groups is None else chunk.page_groups[chosen]
        handover.enter_unprobed(chunk, chunk.codes[chosen], page_groups, references)
        self._use(chunk, count)
        self._clock.charge(handover.count(count, count))
        return count * each_seconds

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
        hits: Int64Array,
        slots: Int64Array,
        misses: Int64Array,
        consumed: int,
    ) -> tuple[Int64Array, Int64Array, Int64Array, int]:
        """Stop before the first hit whose output row has no room."""
        assert chunk.batch is not None
        each_bytes = output.arrival_bytes(chunk.batch, rows[hits])
        answerable = cache.answerable(slots, each_bytes, output.room_bytes)
        if answerable >= len(hits):
            return hits, slots, misses, consumed
        consumed = int(hits[answerable])
        return hits[:answerable], slots[:answerable], misses[: np.searchsorted(misses, consumed)], consumed

    def _references(self, chunk: Chunk, rows: Int64Array) -> Int64Array:
        """Return what leads back to waiting tuples: the slots of their rows, or their positions in the stream."""
        if self._rows is None or chunk.batch is None:
            return rows + chunk.first_position
        return self._rows.put(chunk.batch, rows, chunk.first_position)
