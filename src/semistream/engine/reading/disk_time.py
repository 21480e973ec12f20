"""The time of a disk that works beside the join, on the model clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from semistream.core.clock import ModelClock


class DiskTime:
    """Lets reads overlap with each other and with the join.

    The latency of a request passes while other bytes are still on their way; bytes come one after the other, unless
    each request has a bandwidth of its own.
    """

    def __init__(self, clock: ModelClock) -> None:
        self._clock = clock
        self._free = 0.0
        """When the bytes of all reads so far have come."""
        self._asked = 0.0
        """When the last read was asked for."""

    @property
    def serves_one(self) -> bool:
        """Whether the disk serves one request at a time."""
        return self._clock.costs.max_in_flight == 1

    def now(self) -> float:
        """Return the moment of the work that asks."""
        return self._clock.moment()

    @contextmanager
    def reading(self, asked: float) -> Iterator[None]:
        """Let the disk take the time of what is charged meanwhile: a read that was asked for at a moment."""
        clock = self._clock
        self._asked = asked
        before = clock.operations.bytes_read
        with clock.lap() as load:
            yield
        if not clock.costs.shares_bandwidth:
            self._free = max(asked + load.seconds, self._free)
            return
        transfer_seconds = (clock.operations.bytes_read - before) / clock.costs.bytes_per_second
        arrival = asked + load.seconds - transfer_seconds
        self._free = max(arrival, self._free) + transfer_seconds

    def end_turn(self, buffers: int) -> None:
        """Wait for the reads into so many buffers that have turns, one of which has been joined meanwhile.

        A buffer cannot be loaded while it is joined. Where loads share the bandwidth, that of the others takes it all;
        where each has its own, the disk stands still for this buffer's share of the time.
        """
        if not self._clock.costs.shares_bandwidth:
            self._free += (self.now() - self._asked) / buffers
        self.wait()

    def wait(self) -> None:
        """Wait until the bytes of all reads have come."""
        self._clock.sleep_until(self._free)
