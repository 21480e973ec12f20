"""The one join loop: take stream tuples in, read a page group of the master table, let answered tuples leave."""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

from semistream.engine.loop_parts import LoopParts
from semistream.engine.phases.disk_phase import DiskPhase
from semistream.engine.phases.entrance import QueueEntrance
from semistream.engine.phases.handover import Handover
from semistream.engine.phases.in_turn import InTurn
from semistream.engine.phases.simulated_side_by_side import SimulatedSideBySide
from semistream.engine.phases.stream_input import StreamInput
from semistream.engine.phases.stream_phase import StreamPhase
from semistream.engine.phases.threaded_side_by_side import STOP_SECONDS, ThreadedSideBySide
from semistream.engine.reading.read_ahead import ReadAhead
from semistream.engine.waiting.staying_tuples import StayingTuples
from semistream.engine.waiting.waits import Waits


class Driver(Protocol):
    """Says which phase works when."""

    def rounds(self) -> Generator[None]:
        """Run the join and yield now and then, until the input has ended and every tuple has left."""


class JoinLoop:
    """Runs one join: which page comes next, what is cached and when tuples enter is decided by its policies.

    It has a stream phase, in which tuples enter, and a disk phase, in which one choice of page groups is read and every
    waiting tuple they answer leaves. Without `handover_slots` they work in turn; with them side by side, with a buffer
    of so many tuples in between. What still waits when the input has ended is not left to the page choice if the parts
    have `finish_bytes`: just the pages that are needed are read, in the order of the table and so many bytes at a time.

    With `shares_probes`, the disk phase may look for tuples in the cache, too, in joins of bare keys. With `staying`,
    some of what still waits when the input has ended stays there.
    """

    def __init__(
        self,
        stream: StreamInput,
        parts: LoopParts,
        *,
        handover_slots: int | None = None,
        shares_probes: bool = False,
        staying: StayingTuples | None = None,
    ) -> None:
        self.waiting = parts.waiting
        self.stats = parts.stats
        self.handover: Handover | None = None
        """The buffer between the phases, if they work side by side."""
        waits = Waits(parts.clock, parts.stats, parts.stream_rows)
        self._ahead = ReadAhead(
            parts.reader,
            parts.clock,
            in_flight=parts.in_flight,
            reads=parts.reads_ahead,
            buffers=parts.choice.buffers,
            costs=parts.read_costs,
        )
        self._driver: Driver
        if handover_slots is None:
            entrance = QueueEntrance(parts.waiting, parts.intake)
            self._stream = StreamPhase(stream, parts, entrance, waits)
            pending, fill = self._stream.poll_pending, self._stream.input_fill
            disk = DiskPhase(parts, self._ahead, waits, poll_pending=pending, input_fill=fill, staying=staying)
            self._driver = InTurn(self._stream, disk, entrance)
            return
        late_cache = parts.cache if shares_probes and parts.stream_rows is None else None
        handover = Handover(handover_slots, parts.waiting, parts.clock, waits, late_cache=late_cache)
        self.handover = handover
        self._stream = StreamPhase(stream, parts, handover, waits, handover if late_cache is not None else None)
        disk = DiskPhase(parts, self._ahead, waits, poll_pending=_may_come, staying=staying)
        if parts.clock.model is not None:
            self._driver = SimulatedSideBySide(self._stream, disk, handover, parts.clock.model)
        else:
            self._driver = ThreadedSideBySide(self._stream, disk, handover, parts.output)

    def rounds(self) -> Generator[None]:
        """Run the join and yield after each round, until the input has ended and every tuple has left."""
        return self._driver.rounds()

    @property
    def pausing(self) -> bool:
        """Whether the loop is about to wait for input: what it has answered should be handed out first."""
        return self._stream.is_pausing

    @property
    def idle(self) -> bool:
        """Whether there was no input when last asked for, so that finished rows should not be held back for more."""
        return self._stream.is_silent

    def close(self) -> None:
        """Stop the input; the loop must not be used afterwards."""
        self._stream.close()
        self._ahead.close(STOP_SECONDS if self.handover is not None else None)


def _may_come() -> bool:
    """Tell the disk phase that input is pending: only the stream phase beside it knows, until it says that all came."""
    return True
