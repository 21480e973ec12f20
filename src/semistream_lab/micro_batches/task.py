"""A task that joins one micro-batch after the other, as the product's tasks on Spark do, on the model clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from semistream.core.arrays import Float64Array, Int32Array, Int64Array
from semistream.core.clock import ModelClock
from semistream.core.costs import Operations
from semistream.core.errors import SemistreamError
from semistream.engine.assembly import Assembly
from semistream.engine.loop_parts import LoopParts
from semistream.engine.phases.disk_phase import DiskPhase
from semistream.engine.phases.entrance import QueueEntrance
from semistream.engine.phases.handover import Handover
from semistream.engine.phases.stream_input import KeyInput
from semistream.engine.phases.stream_phase import StreamPhase
from semistream.engine.reading.read_ahead import ReadAhead
from semistream.engine.waiting.waits import Waits
from semistream_lab.micro_batches.due_rows import DueRows
from semistream_lab.micro_batches.waiting_rows import WaitingRows

_FINISH_SHARE = 8
"""What still waits at the end is read one part in so many of the memory at a time."""


class FellBehindError(SemistreamError):
    """A micro-batch took longer than anybody would wait for."""


class TaskAssembly(Assembly):
    """The parts of a join on the model clock whose loop is driven by micro-batches."""

    def task_parts(self) -> LoopParts:
        """Return the parts that all micro-batches share."""
        return replace(self._shared_parts(), finish_bytes=self.budget.total_bytes // _FINISH_SHARE)

    def page_of(self, codes: Int64Array) -> Int32Array:
        """Return the page that each code is on."""
        return self._store.locate(codes)

    @property
    def handover_slots(self) -> int | None:
        """The slots of the buffer between the phases; None if they work in turn."""
        return max(1, self.sizes.handover_slots) if self._side_by_side else None


@dataclass(frozen=True)
class LeftRows:
    """The rows that left with a micro-batch, and when it began and ended."""

    events: Float64Array
    arrivals: Float64Array
    began: float
    ended: float


class MicroBatchTask:
    """Joins micro-batches of keys one after the other; what is cached stays.

    A micro-batch takes its rows in, and what the cache has leaves. While the queue is full the page choice reads as it
    likes. What waits when all rows are in is then answered by reads of just the pages it needs: all of it, or with a
    room what `due` chooses, and the other rows wait for the next micro-batch. They come back to the queue before any
    new row, without another look into the cache.

    With `chunk_rows`, rows are answered chunk by chunk and none waits, as with order "input". A micro-batch that takes
    more than `max_seconds` is given up with an error; after `forget` the task can be used again.
    """

    def __init__(
        self,
        assembly: TaskAssembly,
        clock: ModelClock,
        *,
        due: DueRows | None = None,
        chunk_rows: int | None = None,
    ) -> None:
        assert due is None or chunk_rows is None, "a chunk has no row that waits"
        self.max_seconds = float("inf")
        self._give_up_at = float("inf")
        self._clock = clock
        self._reader = assembly.reader
        self._parts = assembly.task_parts()
        self._handover_slots = assembly.handover_slots
        self._chunk_rows = chunk_rows
        self.due = due
        self.stats = assembly.stats
        self.waiting = WaitingRows.none()
        """The rows that wait between micro-batches."""
        self._locate = assembly.page_of

    def join(self, codes: Int64Array, events: Float64Array) -> LeftRows:
        """Join the rows of a micro-batch that begins now, and let leave what leaves."""
        began = self._clock.now()
        self._give_up_at = began + self.max_seconds
        arrivals = np.full(len(codes), began)
        if self.due is None and not len(self.waiting):
            step = self._chunk_rows or max(1, len(codes))
            for start in range(0, len(codes), step):
                self._run(codes[start : start + step], finish=True)
            return LeftRows(events, arrivals, began, self._clock.now())
        rows = self.waiting.then(WaitingRows(codes, self._locate(codes), events, arrivals))
        staying = self._with_room(rows, len(self.waiting), began)
        left = np.ones(len(rows), dtype=np.bool_)
        left[staying] = False
        self.waiting = rows.where(staying)
        return LeftRows(rows.events[left], rows.arrivals[left], began, self._clock.now())

    def forget(self) -> None:
        """Forget all rows that wait; what is cached stays."""
        queue = self._parts.waiting
        queue.drain(np.flatnonzero(queue.counts))
        self.waiting = WaitingRows.none()

    def _with_room(self, rows: WaitingRows, returned: int, began: float) -> Int64Array:
        """Join rows of which the first have waited before; return those that stay, in the order in which they came."""
        queue, clock = self._parts.waiting, self._clock
        # What the stream phase takes in is known by its position in the micro-batch.
        new = len(rows) - returned
        order = np.concatenate((np.arange(returned, len(rows)), np.arange(returned)))
        if returned:
            queue.add(rows.codes[:returned], self._reader.locate(rows.codes[:returned]), np.arange(new, len(rows)))
            clock.charge(Operations(takes=returned, appends=returned))
        disk = self._run(rows.codes[returned:], finish=False)
        held = queue.drain(np.flatnonzero(queue.counts))
        inside = np.sort(order[held.references])
        leaves = np.ones(len(inside), dtype=np.bool_)
        if self.due is not None:
            leaves = self.due.choose(rows.where(inside), began)
        due = inside[leaves]
        queue.add(rows.codes[due], self._reader.locate(rows.codes[due]), np.arange(len(due)))
        self._finish(disk)
        return inside[~leaves]

    def _run(self, codes: Int64Array, *, finish: bool) -> DiskPhase:
        """Take rows in, with reads while the queue is full; answer all that then waits if it is to finish."""
        parts, clock = self._parts, self._clock
        waits = Waits(clock, parts.stats, None)
        ahead = ReadAhead(
            parts.reader,
            clock,
            in_flight=parts.in_flight,
            reads=parts.reads_ahead,
            buffers=parts.choice.buffers,
            costs=parts.read_costs,
        )
        stream = KeyInput(_one(codes), clock)
        if self._handover_slots is None:
            entrance = QueueEntrance(parts.waiting, parts.intake)
            phase = StreamPhase(stream, parts, entrance, waits)
            disk = DiskPhase(parts, ahead, waits, poll_pending=phase.poll_pending, input_fill=phase.input_fill)
            disk.load_cache()
            self._in_turn(phase, disk, entrance)
        else:
            handover = Handover(self._handover_slots, parts.waiting, clock, waits)
            phase = StreamPhase(stream, parts, handover, waits)
            disk = DiskPhase(parts, ahead, waits, poll_pending=lambda: True)
            disk.load_cache()
            self._side_by_side(phase, disk, handover)
        if finish:
            self._finish(disk)
        return disk

    def _finish(self, disk: DiskPhase) -> None:
        for _ in disk.finish():
            self._check_time()

    def _check_time(self) -> None:
        if self._clock.now() > self._give_up_at:
            raise FellBehindError("A micro-batch takes far longer than its trigger: the stream is too fast.")

    def _in_turn(self, stream: StreamPhase, disk: DiskPhase, entrance: QueueEntrance) -> None:
        while True:
            stream.take_in()
            if not stream.poll() and stream.is_ended:
                return
            disk.read_round()
            entrance.end_read()
            self._check_time()

    def _side_by_side(self, stream: StreamPhase, disk: DiskPhase, handover: Handover) -> None:
        clock = self._clock
        while True:
            with clock.lap() as disk_lap:
                handover.fetch()
                if disk.tuple_count:
                    disk.read_beside()
            with clock.lap() as stream_lap:
                stream.take_in(disk_lap.seconds or float("inf"))
            clock.advance(max(disk_lap.seconds, stream_lap.seconds))
            self._check_time()
            if not stream.poll() and stream.is_ended:
                handover.fetch()
                if not handover.held_count:
                    return


def _one(codes: Int64Array) -> Iterator[tuple[Int64Array, None]]:
    if len(codes):
        yield codes, None
