"""The two phases side by side, on the wall clock."""

from __future__ import annotations

from collections.abc import Generator
from threading import Thread

from semistream.engine.output.output import Output
from semistream.engine.phases.disk_phase import DiskPhase
from semistream.engine.phases.handover import Handover
from semistream.engine.phases.stream_phase import StreamPhase

_POLL_SECONDS = 0.002
STOP_SECONDS = 10.0
"""How long to wait for a thread to end; a read that hangs must not keep the caller from stopping."""


class ThreadedSideBySide:
    """Runs the stream phase in the caller's thread and the disk phase in another.

    The stream phase stops only while the buffer between them is full, the disk phase only while neither the buffer nor
    the queue has a tuple.
    """

    def __init__(self, stream: StreamPhase, disk: DiskPhase, handover: Handover, output: Output | None) -> None:
        self._stream = stream
        self._disk = disk
        self._handover = handover
        self._changed = handover.changed
        self._output = output
        self._stopping = False
        self._input_over = False
        """No tuple will come any more; set by the stream phase for the disk phase, if that is to finish by demand."""
        self._in_round = False
        """Tuples may be out of the queue and not yet answered; set by the disk phase."""
        self._failure: BaseException | None = None
        if output is not None:
            output.at_room = handover.wake_up

    def rounds(self) -> Generator[None]:
        """Run the join and yield now and then, until the input has ended and every tuple has left."""
        self._disk.load_cache()
        stream, handover = self._stream, self._handover
        disk = Thread(target=self._run_disk_phase, name="semistream-disk", daemon=True)
        disk.start()
        try:
            while True:
                stream.take_in()
                yield
                self._raise_failure()
                with self._changed:
                    self._input_over = self._disk.finishes_by_demand and not stream.poll() and stream.is_ended
                    if not self._in_round and not self._has_tuples() and not stream.poll() and stream.is_ended:
                        break
                    if not stream.poll() or stream.note_full_rows():
                        self._changed.wait(_POLL_SECONDS)
                    elif handover.room() <= 0:
                        # Waking up for every few tuples would cost more than they do: half of the room is awaited.
                        self._changed.wait_for(self._may_go_on, timeout=_POLL_SECONDS * 10)
        finally:
            with self._changed:
                self._stopping = True
                self._changed.notify_all()
            disk.join(STOP_SECONDS)
        self._raise_failure()

    def _has_tuples(self) -> bool:
        return self._disk.tuple_count > 0 or self._handover.held_count > 0

    def _may_go_on(self) -> bool:
        return self._handover.is_half_empty or self._failure is not None

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run_disk_phase(self) -> None:
        disk = self._disk
        try:
            while self._wait_for_work():
                self._handover.fetch()
                if self._input_over and not disk.is_loading:
                    self._finish_by_demand()
                else:
                    disk.read_beside(begins=not self._input_over)
        except BaseException as raised:
            self._failure = raised
        finally:
            self._in_round = False
            self._handover.wake_up()

    def _finish_by_demand(self) -> None:
        for _ in self._disk.finish():
            if not self._wait_for_work(finishing=True):
                return

    def _wait_for_work(self, *, finishing: bool = False) -> bool:
        """Wait until there is something to do and the output has room; say whether to go on."""
        with self._changed:
            self._in_round = finishing
            if not self._in_round and not self._has_tuples():
                self._changed.notify_all()
            while not (self._stopping or finishing or self._disk.is_loading or self._has_tuples()) or (
                self._output is not None and self._output.is_overdue and not self._stopping
            ):
                self._changed.wait(0.05)
            self._in_round = not self._stopping
            return self._in_round
