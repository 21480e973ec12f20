"""The loop with its two phases side by side, and reads ahead of the probe."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Condition, Thread
from typing import Any

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.clock import ModelClock
from semistream.core.costs import Operations
from semistream.engine.loop import JoinLoop
from semistream.engine.stream_input import Chunk
from semistream.store.contract import PageSet

_POLL_SECONDS = 0.002
_STOP_SECONDS = 10.0
"""How long to wait for the disk phase to end; a read that hangs must not keep the caller from stopping."""


class SideBySideLoop(JoinLoop):
    """Takes tuples in and reads pages at the same time, with a buffer of unanswered tuples in between.  # I_B

    The stream phase stops only while the buffer is full, the disk phase only while neither the buffer nor the queue has
    a tuple. With a page choice of two buffers, one is loaded while the other is probed. On the wall clock the disk
    phase is a thread and each buffer has a loader thread; on the model clock work that runs side by side costs as much
    as the longer of the two.
    """

    def __init__(self, *, handover_slots: int, **parts: Any) -> None:
        super().__init__(**parts)
        self.handover_slots = handover_slots
        self._handover: deque[tuple[Int64Array, Int32Array, Int64Array]] = deque()
        self._handover_count = 0
        self._changed = Condition()
        self._stopping = False
        self._input_over = False
        """No tuple will come any more; set by the stream phase for the disk phase, if that is to finish by demand."""
        self._failure: BaseException | None = None

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

    def _count_entered(self, operations: Operations, count: int) -> None:
        operations.hand_overs = count

    def _enter(self, chunk: Chunk, codes: Int64Array, partitions: Int32Array, rows: Int64Array) -> None:
        references = self._references(chunk, rows)
        with self._changed:
            self._handover.append((codes, partitions, references))
            self._handover_count += len(codes)
            self._changed.notify_all()

    def _fetch(self) -> None:
        """Move tuples from the buffer to the queue, as many as it has room for."""
        with self._changed:
            while self._handover and (room := self.waiting.capacity - self.waiting.count):
                codes, partitions, references = self._handover.popleft()
                moved = self.waiting.add(codes[:room], partitions[:room], references[:room])
                if moved < len(codes):
                    self._handover.appendleft((codes[moved:], partitions[moved:], references[moved:]))
                self._handover_count -= moved
                self.clock.charge(Operations(takes=moved, appends=moved))
            if self._handover_count <= self.handover_slots // 2:
                self._changed.notify_all()

    # On the model clock.

    def _simulated(self, clock: ModelClock) -> Iterator[None]:
        while True:
            with clock.lap() as disk:
                self._fetch()
                worked = self.waiting.count > 0
                if worked:
                    self._simulated_read(clock)
            with clock.lap() as stream:
                self._take_in(disk.seconds if worked else float("inf"))
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
                    partitions = self._choice.choose(self.waiting, input_pending=True)
                    self._probe(partitions, self._reader.read(partitions))
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
