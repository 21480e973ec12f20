"""The two phases side by side, on the model clock."""

from __future__ import annotations

from collections.abc import Generator

from semistream.core.clock import ModelClock
from semistream.engine.phases.disk_phase import DiskPhase
from semistream.engine.phases.handover import Handover
from semistream.engine.phases.stream_phase import StreamPhase


class SimulatedSideBySide:
    """Lets each phase work for the same time in one thread: a round costs as much as the longer of the two."""

    def __init__(self, stream: StreamPhase, disk: DiskPhase, handover: Handover, clock: ModelClock) -> None:
        self._stream = stream
        self._disk = disk
        self._handover = handover
        self._clock = clock

    def rounds(self) -> Generator[None]:
        """Run the join and yield after each round, until the input has ended and every tuple has left."""
        stream, disk, handover, clock = self._stream, self._disk, self._handover, self._clock
        disk.load_cache()
        while True:
            with clock.lap() as disk_lap:
                handover.fetch()
                if disk.tuple_count:
                    disk.read_beside()
            with clock.lap() as stream_lap:
                stream.take_in(disk_lap.seconds or float("inf"))
            clock.advance(max(disk_lap.seconds, stream_lap.seconds))
            if not disk.tuple_count and not handover.held_count and not stream.poll():
                if stream.is_ended:
                    return
                yield from stream.pause()
            yield
