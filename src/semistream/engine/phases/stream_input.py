"""Where stream tuples come from, and which of them are there by now."""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Float64Array, Int32Array, Int64Array
from semistream.core.clock import Clock
from semistream.engine.rows.row_sizes import RowSizes


def _no_rows() -> Int64Array:
    return np.empty(0, dtype=np.int64)


@dataclass
class Chunk:
    """Some consecutive tuples of the stream, from `first_position` on."""

    first_position: int
    codes: Int64Array
    """The key codes of the tuples that may have a match."""
    rows: Int64Array
    """Where these tuples stand in the chunk."""
    page_groups: Int32Array | None
    """The page group of the master table that each needs; None if that is found only for those that must wait."""
    arrival_seconds: Float64Array | None = None
    """When each arrived; None if all of them are there."""
    batch: pa.RecordBatch | None = None
    """All columns of all tuples of the chunk."""
    null_rows: Int64Array = field(default_factory=_no_rows)
    """Tuples with a null in their key."""
    unmatchable_rows: Int64Array = field(default_factory=_no_rows)
    """Tuples whose key no master row can have, e.g. more digits than the master's type."""
    refusals: tuple[tuple[Int64Array, str], ...] = ()
    """Tuples that cannot be processed within the budget, because they or the page they need are too large: why not."""
    variable_bytes: int = 0
    """What the columns without a fixed width take."""
    has_waited: bool = False
    """Its tuples have waited in an earlier run: what is learned about the stream leaves them out."""
    _ends: Int64Array | None = None

    def count_within(self, used: int, limit_bytes: int, sizes: RowSizes) -> int:
        """Return how many tuples after the first `used` take no more than the limit in such columns."""
        if self._ends is None:
            assert self.batch is not None
            self._ends = np.cumsum(sizes.of(self.batch, self.rows))
        before = int(self._ends[used - 1]) if used else 0
        return max(0, int(np.searchsorted(self._ends, before + limit_bytes, side="right")) - used)


class StreamInput(ABC):
    """The input of a join, asked by the thread that takes tuples in."""

    @abstractmethod
    def poll(self) -> Chunk | None:
        """Return the next tuples if some are there; never blocks for input that may come later."""

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether `poll` will never return tuples again."""

    @abstractmethod
    def wait(self) -> None:
        """Block until `poll` may return tuples or the input has ended."""

    def close(self) -> None:  # noqa: B027
        """Stop whatever produces the input."""


class KeyInput(StreamInput):
    """A stream of bare keys with or without arrival times, as a workload generates it."""

    def __init__(
        self,
        chunks: Iterator[tuple[Int64Array, Float64Array | None]],
        clock: Clock,
    ) -> None:
        self._chunks = chunks
        self._clock = clock
        self._position = 0
        self._held: Chunk | None = None
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether the generator is exhausted."""
        self._fetch()
        return self._ended

    def poll(self) -> Chunk | None:
        """Return the next chunk once its first tuple has arrived."""
        self._fetch()
        held = self._held
        if held is None or (held.arrival_seconds is not None and held.arrival_seconds[0] > self._clock.now()):
            return None
        self._held = None
        return held

    def wait(self) -> None:
        """Let the clock pass until the next chunk begins to arrive."""
        self._fetch()
        if self._held is not None and self._held.arrival_seconds is not None:
            self._clock.sleep_until(float(self._held.arrival_seconds[0]))

    def _fetch(self) -> None:
        if self._held is None and not self._ended:
            item = next(self._chunks, None)
            if item is None:
                self._ended = True
                return
            codes, arrivals = item
            rows = np.arange(len(codes), dtype=np.int64)
            self._held = Chunk(self._position, codes, rows, None, arrivals)
            self._position += len(codes)


class BatchInput(StreamInput):
    """A stream of Arrow record batches.

    With `pump`, a thread of its own pulls the source, at most two batches ahead and none once `ahead_bytes` are, so
    that the join goes on while the source is silent; without it the source is taken to have everything at hand. A
    source may yield None to say that nothing is there just now.
    """

    def __init__(
        self,
        batches: Iterable[pa.RecordBatch | None],
        encode: Callable[[int, pa.RecordBatch], Chunk],
        *,
        pump: bool,
        ahead_bytes: int = 2**62,
    ) -> None:
        self._encode = encode
        self._position = 0
        self._source: _Direct | _Pump = _Pump(iter(batches), ahead_bytes) if pump else _Direct(iter(batches))

    @property
    def ended(self) -> bool:
        """Whether the source is exhausted."""
        return self._source.ended

    def poll(self) -> Chunk | None:
        """Return the next batch that has rows, if one is there."""
        batch = self._source.poll()
        if batch is None or not batch.num_rows:
            return None
        chunk = self._encode(self._position, batch)
        self._position += batch.num_rows
        return chunk

    def wait(self) -> None:
        """Block until the source has yielded something."""
        self._source.wait()

    def close(self) -> None:
        """Let the pump stop after the batch it waits for."""
        self._source.close()


class _Direct:
    def __init__(self, batches: Iterator[pa.RecordBatch | None]) -> None:
        self._batches = batches
        self.ended = False

    def poll(self) -> pa.RecordBatch | None:
        try:
            return next(self._batches)
        except StopIteration:
            self.ended = True
            return None

    def wait(self) -> None:
        """Nothing to wait for: the next poll pulls the source."""

    def close(self) -> None:
        """Nothing to stop."""


class _Pump:
    """Pulls an iterator in a thread and hands its items over; an error of the iterator is raised by `poll`."""

    def __init__(self, batches: Iterator[pa.RecordBatch | None], ahead_bytes: int) -> None:
        self._ahead_bytes = ahead_bytes
        self._has_room = threading.Event()
        self._handed: queue.Queue[tuple[pa.RecordBatch | None, BaseException | None, bool]] = queue.Queue(2)
        self._peeked: tuple[pa.RecordBatch | None, BaseException | None, bool] | None = None
        self._closed = threading.Event()
        self.ended = False
        self._thread = threading.Thread(target=self._pull, args=(batches,), name="semistream-input", daemon=True)
        self._thread.start()

    def poll(self) -> pa.RecordBatch | None:
        if self._peeked is None:
            try:
                self._peeked = self._handed.get_nowait()
            except queue.Empty:
                return None
        (batch, error, last), self._peeked = self._peeked, None
        self._has_room.set()
        self.ended = last
        if error is not None:
            raise error
        return batch

    def wait(self) -> None:
        if self._peeked is None and not self.ended:
            self._peeked = self._handed.get()

    def close(self) -> None:
        self._closed.set()

    def _pull(self, batches: Iterator[pa.RecordBatch | None]) -> None:
        error: BaseException | None = None
        try:
            for batch in batches:
                if batch is not None:
                    self._hand_over((batch, None, False))
                    is_large = batch.nbytes >= self._ahead_bytes
                    del batch  # while the next one is awaited
                    while is_large and not self._handed.empty() and not self._closed.is_set():
                        self._has_room.wait(0.2)
                        self._has_room.clear()
                if self._closed.is_set():
                    return
        except BaseException as raised:
            error = raised
        self._hand_over((None, error, True))

    def _hand_over(self, item: tuple[pa.RecordBatch | None, BaseException | None, bool]) -> None:
        while not self._closed.is_set():
            try:
                self._handed.put(item, timeout=0.2)
            except queue.Full:
                continue
            return
