"""The buffer between two phases that run side by side."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from threading import Condition

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.clock import Clock
from semistream.core.costs import CostProfile, Operations
from semistream.engine.cache.cache_stage import CacheStage
from semistream.engine.phases.entrance import Entrance
from semistream.engine.phases.stream_input import Chunk
from semistream.engine.waiting.waiting_tuples import WaitingTuples
from semistream.engine.waiting.waits import Waits

_FULL = 0.9
"""From this share of its slots on, the queue counts as full."""


@dataclass(frozen=True)
class _HandedOver:
    """Tuples on their way to the disk phase; `chunk` is where they came from if nobody has looked for them yet."""

    codes: Int64Array
    page_groups: Int32Array
    references: Int64Array
    chunk: Chunk | None = None

    def after(self, count: int) -> _HandedOver:
        """Return all but the first tuples."""
        return _HandedOver(self.codes[count:], self.page_groups[count:], self.references[count:], self.chunk)


class Handover(Entrance):
    """Holds tuples until the disk phase fetches them into the queue.  # I_B

    With `late_cache`, a stream phase that has no time to keep the queue full may leave it to the disk phase to look for
    some tuples in that cache, so that neither has to wait for the other where the cache answers nearly all. In joins of
    bare keys only: rows would keep their whole batch in memory.

    `changed` guards the buffer and tells whoever waits for tuples or for room.
    """

    def __init__(
        self, slots: int, waiting: WaitingTuples, clock: Clock, waits: Waits, *, late_cache: CacheStage | None = None
    ) -> None:
        self.slots = slots
        self.changed = Condition()
        self._waiting = waiting
        self._clock = clock
        self._waits = waits
        self._late_cache = late_cache
        self._held: deque[_HandedOver] = deque()
        self._count = 0
        self._lacked_room = False
        """Whether the stream phase stopped last time because the buffer was full, and not for want of time or input."""

    @property
    def held_count(self) -> int:
        """The tuples in the buffer."""
        return self._count

    @property
    def is_half_empty(self) -> bool:
        """Whether half of the slots are free."""
        return self._count <= self.slots // 2

    def room(self) -> int:
        """Return the free slots."""
        return self.slots - self._count

    def enter(self, codes: Int64Array, page_groups: Int32Array, references: Int64Array) -> None:
        """Hand tuples over that are not cached."""
        self._hold(_HandedOver(codes, page_groups, references))

    def count(self, taken: int, entered: int) -> Operations:
        """Return what it costs to take tuples and to hand some of them over."""
        return Operations(takes=taken, hand_overs=entered)

    def entry_seconds(self, costs: CostProfile) -> float:
        """Return what it costs to hand a tuple over."""
        return costs.hand_over_seconds

    def spare_room(self) -> int:
        """Return how many tuples the stream phase should hand over without looking for them, because it is behind."""
        waiting = self._waiting
        if self._late_cache is None or self._lacked_room or waiting.count >= _FULL * waiting.capacity:
            return 0
        return self.slots // 2 - self._count

    def enter_unprobed(self, chunk: Chunk, codes: Int64Array, page_groups: Int32Array, references: Int64Array) -> None:
        """Hand tuples over that nobody has looked for."""
        self._hold(_HandedOver(codes, page_groups, references, chunk))

    def note_room(self) -> None:
        """Note whether the stream phase stops because there is no room."""
        self._lacked_room = self._count >= self.slots

    def fetch(self) -> None:
        """Move tuples to the queue, as many as it has room for; the disk phase calls it."""
        with self.changed:
            while self._held and (room := self._waiting.capacity - self._waiting.count) > 0:
                tuples = self._held.popleft()
                self._count -= len(tuples.codes)
                is_looked_for = tuples.chunk is None
                if tuples.chunk is not None:
                    tuples = self._look_for(tuples, tuples.chunk)
                moved = self._waiting.add(tuples.codes[:room], tuples.page_groups[:room], tuples.references[:room])
                self._clock.charge(Operations(takes=moved if is_looked_for else 0, appends=moved))
                if moved < len(tuples.codes):
                    self._held.appendleft(tuples.after(moved))
                    self._count += len(tuples.codes) - moved
            if self.is_half_empty:
                self.changed.notify_all()

    def wake_up(self) -> None:
        """Let both phases look again."""
        with self.changed:
            self.changed.notify_all()

    def _hold(self, tuples: _HandedOver) -> None:
        with self.changed:
            self._held.append(tuples)
            self._count += len(tuples.codes)
            self.changed.notify_all()

    def _look_for(self, tuples: _HandedOver, chunk: Chunk) -> _HandedOver:
        """Answer the tuples that are cached; return the others."""
        cache = self._late_cache
        assert cache is not None
        with cache.guard:
            slots = cache.probe(tuples.codes, tuples.page_groups)
            hits, misses = np.flatnonzero(slots >= 0), np.flatnonzero(slots < 0)
            absent = 0
            if len(hits):
                of_hits = slots[hits].astype(np.int64)
                absent = cache.answer(tuples.codes, chunk, tuples.references, hits, of_hits, None)
            cache.arrived(len(slots), tuples.page_groups[misses])
        self._waits.leave(len(hits), absent=absent, cache_hits=len(hits) - absent)
        self._clock.charge(Operations(takes=len(slots), probes=len(slots), outputs=len(hits)))
        return _HandedOver(tuples.codes[misses], tuples.page_groups[misses], tuples.references[misses])
