"""When the tuples of a stream arrive."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np

from semistream.core.arrays import Float64Array
from semistream.generator.settings import number_from, positive_number, whole_number


class ArrivalSource(Protocol):
    """Gives the arrival times of a stream's tuples, in seconds since the stream began.

    Times must never fall, and must be the same however the takes are cut. A source that ends must give fewer times than
    asked for when it does, and none from then on. Not safe to call from two threads at once.
    """

    def take(self, count: int) -> Float64Array:
        """Return the arrival seconds of the next `count` tuples."""


class GeneratedArrivals(ABC):
    """Arrival times of an endless stream, which follow from the position of a tuple alone.

    A kind of arrivals says how many tuples a second arrive on average, and when the tuples of a range of positions
    arrive. The work for a range must not grow with its position by more than the logarithm of it.
    """

    def __init__(self, mean_rate: float) -> None:
        self.mean_rate = mean_rate
        self._position = 0

    def take(self, count: int) -> Float64Array:
        """Return the arrival seconds of the next `count` tuples."""
        moments = self._moments(self._position, whole_number("count", count, minimum=0))
        self._position += len(moments)
        return moments

    def seek(self, position: int) -> None:
        """Let the next take begin with the tuple at `position`, from 0 on."""
        self._position = whole_number("position", position, minimum=0)

    def arrived_by(self, seconds: float) -> int:
        """Return how many tuples have arrived by then: those whose arrival time is at most `seconds`.

        Searches from the mean rate outwards, so the cost grows only with the logarithm of the time.
        """
        guess = max(0, int(seconds * self.mean_rate))
        reach = 1
        low, high = guess, guess
        while low > 0 and self._moment(low - 1) > seconds:
            low, high = max(0, low - reach), low - 1
            reach *= 2
        reach = 1
        while self._moment(high) <= seconds:
            low, high = high + 1, high + reach
            reach *= 2
        while low < high:
            middle = (low + high) // 2
            if self._moment(middle) <= seconds:
                low = middle + 1
            else:
                high = middle
        return low

    def _moment(self, position: int) -> float:
        return float(self._moments(position, 1)[0])

    @abstractmethod
    def _moments(self, first: int, count: int) -> Float64Array:
        """Return the arrival seconds of the `count` tuples from position `first` on."""


class ConstantArrivals(GeneratedArrivals):
    """Tuples that arrive at equal distances, `rate` a second, the first one at once."""

    def __init__(self, rate: float) -> None:
        super().__init__(positive_number("rate", rate))

    def _moments(self, first: int, count: int) -> Float64Array:
        return positions(first, count) / self.mean_rate


class IntermittentArrivals(GeneratedArrivals):
    """Tuples that arrive at equal distances for `on_seconds` and then not at all for `off_seconds`, again and again.

    While the stream is on, `rate` tuples arrive a second; the mean over all time is lower.
    """

    def __init__(self, rate: float, on_seconds: float, off_seconds: float) -> None:
        self._rate = positive_number("rate", rate)
        self._on_seconds = positive_number("on_seconds", on_seconds)
        self._round_seconds = self._on_seconds + number_from("off_seconds", off_seconds, minimum=0)
        super().__init__(self._rate * self._on_seconds / self._round_seconds)

    def _moments(self, first: int, count: int) -> Float64Array:
        busy_seconds = positions(first, count) / self._rate
        rounds = np.floor(busy_seconds / self._on_seconds)
        since_start = np.maximum(busy_seconds - rounds * self._on_seconds, 0.0)
        return rounds * self._round_seconds + since_start


def positions(first: int, count: int) -> Float64Array:
    """Return the positions of `count` tuples from `first` on."""
    return np.arange(first, first + count, dtype=np.float64)
