"""The time of a disk that works beside the join, on the model clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from semistream.core.clock import ModelClock


class DiskTime:
    """Lets reads overlap with each other and with the join.

    The latency of a request passes while other bytes are still on their way; bytes come one after the other.
    """

    def __init__(self, clock: ModelClock) -> None:
        self._clock = clock
        self._free = 0.0
        """When the bytes of all reads so far have come."""

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
        before = clock.operations.bytes_read
        with clock.lap() as load:
            yield
        transfer_seconds = (clock.operations.bytes_read - before) / clock.costs.bytes_per_second
        arrival = asked + load.seconds - transfer_seconds
        self._free = max(arrival, self._free) + transfer_seconds

    def wait(self) -> None:
        """Wait until the bytes of all reads have come."""
        self._clock.sleep_until(self._free)
