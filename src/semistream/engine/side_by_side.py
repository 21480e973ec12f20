"""The loop with its two phases side by side, and reads ahead of the probe."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Condition, Thread

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.clock import ModelClock
from semistream.core.costs import Operations
from semistream.engine.loop import JoinLoop
from semistream.engine.loop_parts import LoopParts
from semistream.engine.stream_input import Chunk, StreamInput
from semistream.store.contract import PageSet

_POLL_SECONDS = 0.002
_STOP_SECONDS = 10.0
"""How long to wait for the disk phase to end; a read that hangs must not keep the caller from stopping."""
_FULL = 0.9
"""From this share of its slots on, the queue counts as full."""


@dataclass(frozen=True)
class _Passed:
    """Tuples on their way to the disk phase; `chunk` is where they came from if nobody has looked for them yet."""

    codes: Int64Array
    partitions: Int32Array
    references: Int64Array
    chunk: Chunk | None = None

    def __getitem__(self, some: slice) -> _Passed:
        return _Passed(self.codes[some], self.partitions[some], self.references[some], self.chunk)


class SideBySideLoop(JoinLoop):
    """Takes tuples in and reads pages at the same time, with a buffer of unanswered tuples in between.  # I_B

    The stream phase stops only while the buffer is full, the disk phase only while neither the buffer nor the queue has
    a tuple. With a page choice of two buffers, one is loaded while the other is probed. On the wall clock the disk
    phase is a thread and each buffer has a loader thread; on the model clock work that runs side by side costs as much
    as the longer of the two.

    With `shares_probes`, a stream phase that has no time to keep the queue full leaves it to the disk phase to look for
    some tuples in the cache, so that neither has to wait for the other where the cache answers nearly all. In joins of
    bare keys only: rows would keep their whole batch in memory.
    """

    def __init__(
        self, stream: StreamInput, parts: LoopParts, *, handover_slots: int, shares_probes: bool = False
    ) -> None:
        super().__init__(stream, parts)
        self.handover_slots = handover_slots
        self._shares_probes = shares_probes and self._rows is None and self._cache is not None
        self._handover: deque[_Passed] = deque()
        self._handover_count = 0
        self._lacked_room = False
        """Whether the stream phase stopped last time because the buffer was full, and not for want of time or input."""
        self._changed = Condition()
        self._stopping = False
        self._input_over = False
        """No tuple will come any more; set by the stream phase for the disk phase, if that is to finish by demand."""
        self._failure: BaseException | None = None
        if self._output is not None:
            self._output.at_room = self._wake_up

    def _wake_up(self) -> None:
        with self._changed:
            self._changed.notify_all()

    @property
    def handover_count(self) -> int:
        """The tuples in the buffer between the phases."""
        return self._handover_count

    def rounds(self) -> Generator[None]:
        """Run the join and yield now and then, until the input has ended and every tuple has left."""
        self._load_cache()
        if isinstance(self.clock, ModelClock):
            yield from self._simulated(self.clock)
        else:
            yield from self._threaded()

    # What differs from the loop with one thread.

    def _room(self) -> int:
        room = self.handover_slots - self._handover_count
        return room if self._rows is None else min(room, self._rows.free_slots)

    @property
    def _inside(self) -> int:
        return super()._inside + self._handover_count

    @property
    def _enter_seconds(self) -> float:
        return self._costs.hand_over_seconds

    def _is_input_pending(self) -> bool:
        return True  # the stream phase knows; until it says that no more will come, more may

    def _count_entered(self, operations: Operations, count: int) -> None:
        operations.hand_overs = count

    def _enter(self, chunk: Chunk, codes: Int64Array, partitions: Int32Array, rows: Int64Array) -> None:
        self._pass(_Passed(codes, partitions, self._references(chunk, rows)))

    def _pass(self, tuples: _Passed) -> None:
        with self._changed:
            self._handover.append(tuples)
            self._handover_count += len(tuples.codes)
            self._changed.notify_all()

    def _take_in(self, limit_seconds: float = float("inf")) -> None:
        super()._take_in(limit_seconds)
        self._lacked_room = self._room() <= 0

    def _take_some(self, room: int, limit_seconds: float) -> float:
        spare = self.handover_slots // 2 - self._handover_count
        is_behind = not self._lacked_room and self.waiting.count < _FULL * self.waiting.capacity
        if not self._shares_probes or not is_behind or spare <= 0:
            return super()._take_some(room, limit_seconds)
        return self._take_unprobed(spare, limit_seconds)

    def _take_unprobed(self, most: int, limit_seconds: float) -> float:
        """Take a slice of the chunk in and pass it on as it is; return the seconds charged."""
        chunk, start = self._chunk, self._used
        assert chunk is not None
        each_seconds = self._costs.take_seconds + self._costs.hand_over_seconds
        if each_seconds and limit_seconds < most * each_seconds:
            most = int(limit_seconds / each_seconds) + 1
        count = min(self._available(chunk) - start, most)
        some = slice(start, start + count)
        self._waits.arrive(chunk, start, count)
        references = self._references(chunk, chunk.rows[some])
        self._pass(_Passed(chunk.codes[some], chunk.partitions[some], references, chunk))
        self.stats.tuples_in += count
        self._used += count
        if self._used == len(chunk.codes):
            self._chunk = None
        self.clock.charge(Operations(takes=count, hand_overs=count))
        return count * each_seconds

    def _fetch(self) -> None:
        """Move tuples from the buffer to the queue, as many as it has room for."""
        with self._changed:
            while self._handover and (room := self.waiting.capacity - self.waiting.count) > 0:
                passed = self._handover.popleft()
                self._handover_count -= len(passed.codes)
                is_looked_for = passed.chunk is None
                if passed.chunk is not None:
                    passed = self._look_for(passed, passed.chunk)
                moved = self.waiting.add(passed.codes[:room], passed.partitions[:room], passed.references[:room])
                self.clock.charge(Operations(takes=moved if is_looked_for else 0, appends=moved))
                if moved < len(passed.codes):
                    self._handover.appendleft(passed[moved:])
                    self._handover_count += len(passed.codes) - moved
            if self._handover_count <= self.handover_slots // 2:
                self._changed.notify_all()

    def _look_for(self, passed: _Passed, chunk: Chunk) -> _Passed:
        """Answer the tuples that are cached; return the others."""
        cache = self._cache
        assert cache is not None
        with cache.guard:
            slots = cache.probe(passed.codes, passed.partitions)
            hits, misses = np.flatnonzero(slots >= 0), np.flatnonzero(slots < 0)
            absent = self._answer_from_cache(cache, chunk, passed.codes, passed.references, slots, hits)
            cache.arrived(len(slots))
        self._leave(len(hits), absent=absent, cache_hits=len(hits) - absent)
        self.clock.charge(Operations(takes=len(slots), probes=len(slots), outputs=len(hits)))
        return _Passed(passed.codes[misses], passed.partitions[misses], passed.references[misses])

    # On the model clock.

    def _simulated(self, clock: ModelClock) -> Iterator[None]:
        while True:
            with clock.lap() as disk:
                self._fetch()
                worked = self.waiting.count > 0
                if worked and self._choice.merges:
                    self._read_round()
                elif worked:
                    self._simulated_read(clock)
            with clock.lap() as stream:
                self._take_in(disk.seconds or float("inf"))
            clock.advance(max(disk.seconds, stream.seconds))
            if self._is_finished():
                return
            if not self._inside and not self._has_input():
                yield from self._pause()
            yield

    def _simulated_read(self, clock: ModelClock) -> None:
        partitions = self._choice.choose(self.waiting, input_pending=True)
        buffers = self._choice.buffers
        with clock.lap() as load:
            pages = self._reader.read(partitions, in_flight=buffers)
        with clock.lap() as probe:
            self._probe(partitions, pages)
        ahead = max(load.seconds, probe.seconds)
        clock.advance(load.seconds + probe.seconds if buffers == 1 else ahead)

    # On the wall clock.

    def _threaded(self) -> Iterator[None]:
        disk = Thread(target=self._disk_phase, name="semistream-disk", daemon=True)
        disk.start()
        try:
            while True:
                self._take_in()
                yield
                self._raise_failure()
                with self._changed:
                    self._input_over = self._finishes
                    if self._is_finished():
                        break
                    if not self._has_input() or self._is_full_of_rows():
                        self._changed.wait(_POLL_SECONDS)
                    elif self._room() <= 0:
                        # Waking up for every few tuples would cost more than they do: half of the room is awaited.
                        self._changed.wait_for(self._has_half_the_room, timeout=_POLL_SECONDS * 10)
        finally:
            with self._changed:
                self._stopping = True
                self._changed.notify_all()
            disk.join(_STOP_SECONDS)
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _has_half_the_room(self) -> bool:
        return self._handover_count <= self.handover_slots // 2 or self._failure is not None

    def _disk_phase(self) -> None:
        try:
            if self._choice.buffers == 1:
                while self._wait_for_work(loading=False):
                    self._fetch()
                    if self._input_over:
                        self._finish_by_demand()
                        continue
                    self._read_round()
            else:
                self._disk_phase_reading_ahead()
        except BaseException as raised:
            self._failure = raised
            with self._changed:
                self._changed.notify_all()

    def _disk_phase_reading_ahead(self) -> None:
        loads: list[tuple[int, Future[PageSet]] | None] = [None] * self._choice.buffers
        with ThreadPoolExecutor(self._choice.buffers, "semistream-loader") as loaders:
            while self._wait_for_work(loading=any(loads)):
                self._fetch()
                if not self._input_over:
                    self._start_loads(loads, loaders)
                elif not any(loads):
                    self._finish_by_demand()
                    continue
                self._probe_first(loads)

    def _finish_by_demand(self) -> None:
        for _ in self._finish():
            if not self._wait_for_work(loading=True):
                return

    def _wait_for_work(self, *, loading: bool) -> bool:
        with self._changed:
            while not (self._stopping or loading or self.waiting.count or self._handover_count) or (
                self._output is not None and self._output.is_overdue and not self._stopping
            ):
                self._changed.wait(0.05)
            return not self._stopping

    def _start_loads(self, loads: list[tuple[int, Future[PageSet]] | None], loaders: ThreadPoolExecutor) -> None:
        for buffer in range(len(loads)):
            if loads[buffer] is None and self.waiting.count:
                taken = next((load[0] for load in loads if load is not None), -1)
                partition = self._choice.choose_for(buffer, self.waiting, taken)
                if partition >= 0:
                    wanted = np.array([partition], dtype=np.int64)
                    loads[buffer] = (partition, loaders.submit(self._reader.read, wanted))

    def _probe_first(self, loads: list[tuple[int, Future[PageSet]] | None]) -> None:
        done, _ = wait([load[1] for load in loads if load is not None], return_when=FIRST_COMPLETED)
        for buffer, load in enumerate(loads):
            if load is not None and load[1] in done:
                self._probe(np.array([load[0]], dtype=np.int64), load[1].result())
                loads[buffer] = None
                return
