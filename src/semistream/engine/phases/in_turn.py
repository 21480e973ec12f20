"""The two phases in turn, in one thread."""

from __future__ import annotations

from collections.abc import Generator

from semistream.engine.phases.disk_phase import DiskPhase
from semistream.engine.phases.entrance import QueueEntrance
from semistream.engine.phases.stream_phase import StreamPhase


class InTurn:
    """Lets tuples enter until the intake wants a read or no input is there, then reads once, and so on."""

    def __init__(self, stream: StreamPhase, disk: DiskPhase, entrance: QueueEntrance) -> None:
        self._stream = stream
        self._disk = disk
        self._entrance = entrance

    def rounds(self) -> Generator[None]:
        """Run the join and yield after each round, until the input has ended and every tuple has left."""
        stream, disk, entrance = self._stream, self._disk, self._entrance
        disk.load_cache()
        while True:
            stream.take_in()
            if self._begin_read():
                if disk.finishes_by_demand and not stream.poll() and stream.is_ended:
                    yield from disk.finish()
                    entrance.end_read()
                else:
                    wants_input = disk.read_round()
                    entrance.end_read()
                    if wants_input and not stream.poll():
                        yield from stream.pause()
            elif not disk.tuple_count and not stream.poll() and stream.is_ended:
                return
            elif not stream.poll():
                yield from stream.pause()
            yield

    def _begin_read(self) -> bool:
        """Begin a read if it is time for one, and say whether it is."""
        stream = self._stream
        if not self._disk.tuple_count:
            return False
        if stream.note_full_rows():
            return True
        return self._entrance.begin_read(available=stream.poll(), ended=stream.input_ended)
