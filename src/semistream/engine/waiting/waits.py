"""Which tuples have left the join, and how long they stayed."""

from __future__ import annotations

from bisect import bisect_right
from threading import RLock

from semistream.core.arrays import Int64Array
from semistream.core.clock import Clock
from semistream.core.stats import JoinStats
from semistream.engine.phases.stream_input import Chunk
from semistream.engine.rows.stream_rows import StreamRows


class Waits:
    """Counts the tuples that leave and measures how long they stayed: from their arrival, if known, or their entry.

    Both phases share it, and it may be called from two threads; `lock` is held by who changes the counters of tuples
    that leave. A tuple is known by a reference: the slot of its row in `rows`, or its position in the stream.
    """

    def __init__(self, clock: Clock, stats: JoinStats, rows: StreamRows | None = None) -> None:
        self._clock = clock
        self._stats = stats
        self._rows = rows
        self._inside = 0
        self._since = clock.now()
        self._positions: list[int] = []
        self._seconds: list[float] = []
        self._forgotten = 0
        self._last_position = 0
        self.lock = RLock()

    def arrive(self, chunk: Chunk, start: int, count: int) -> None:
        """Note that tuples of a chunk have entered."""
        if not count:
            return
        now = self._clock.now()
        with self.lock:
            self._last_position = chunk.first_position + int(chunk.rows[start + count - 1])
            self._positions.append(chunk.first_position + int(chunk.rows[start]))
            self._pass(now)
            if chunk.arrival_seconds is None:
                self._seconds.append(now)
            else:
                self._seconds.append(float(chunk.arrival_seconds[start]))
                before = now - chunk.arrival_seconds[start : start + count]
                self._stats.wait_seconds_total += float(before.sum())
            self._inside += count

    def leave_on_arrival(self, chunk: Chunk) -> None:
        """Count the tuples of a chunk that leave before they enter."""
        nulls, unmatchable = len(chunk.null_rows), len(chunk.unmatchable_rows)
        refused = sum(len(rows) for rows, _ in chunk.refusals)
        stats = self._stats
        with self.lock:
            stats.tuples_in += nulls + unmatchable + refused
            stats.tuples_out += nulls + unmatchable + refused
            stats.null_keys += nulls
            stats.absent += unmatchable
            stats.refused += refused

    def leave(self, count: int, *, absent: int = 0, cache_hits: int = 0) -> None:
        """Count tuples that leave, of which so many are absent and so many the cache has answered."""
        stats = self._stats
        with self.lock:
            stats.tuples_out += count
            stats.absent += absent
            stats.cache_hits += cache_hits
            self._pass(self._clock.now())
            self._inside -= count
            if not self._inside:
                self._positions.clear()
                self._seconds.clear()
                self._forgotten = 0

    def stay(self, count: int) -> None:
        """Count tuples that stay for a later run."""
        with self.lock:
            self._stats.stayed += count
            self._pass(self._clock.now())
            self._inside -= count

    def oldest_left(self, position: int) -> None:
        """Note the stream position of the oldest of some tuples that leave."""
        stats = self._stats
        stats.max_wait_tuples = max(stats.max_wait_tuples, self._last_position - position)
        with self.lock:
            index = bisect_right(self._positions, position, lo=self._forgotten) - 1
            if index >= self._forgotten:
                stats.max_wait_seconds = max(stats.max_wait_seconds, self._clock.now() - self._seconds[index])

    def first_position(self, references: Int64Array) -> int:
        """Return the smallest position of some tuples inside."""
        if self._rows is None:
            return min(map(self.position, references.tolist()))
        return int(self._rows.positions(references).min())

    def position(self, low: int) -> int:
        """Return the position of a tuple inside, of which the last 32 bits are given."""
        return self._last_position - ((self._last_position - low) & 0xFFFFFFFF)

    def forget_before(self, position: int) -> None:
        """Forget arrivals before the oldest tuple inside."""
        with self.lock:
            self._forgotten = max(self._forgotten, bisect_right(self._positions, position, lo=self._forgotten) - 1)
            if self._forgotten > 4096 and self._forgotten * 2 > len(self._positions):
                del self._positions[: self._forgotten], self._seconds[: self._forgotten]
                self._forgotten = 0

    def _pass(self, now: float) -> None:
        self._stats.wait_seconds_total += self._inside * (now - self._since)
        self._since = now
