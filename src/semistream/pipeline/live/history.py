"""The history of a run in bounded memory: the latest batches one by one, older ones put together."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from semistream.pipeline.live.points import Point, together


class History:
    """Points of a run, at most `max_points` for all of it and the latest `recent_points` by themselves.

    When there is no room for another point, neighbours are put together, and from then on a point holds twice as many
    batches. However long the run, its history takes the same memory, and no batch is lost from the sums.
    """

    def __init__(self, max_points: int = 240, recent_points: int = 120) -> None:
        assert max_points % 2 == 0, "neighbours are put together in pairs"
        self._max_points = max_points
        self._points: list[Point] = []
        self._batches_of_a_point = 1
        self._batches = 0
        self._recent: deque[Point] = deque(maxlen=recent_points)

    def add(self, point: Point) -> None:
        """Add what a batch did."""
        self._batches += point.batches
        self._recent.append(point)
        if self._points and self._points[-1].batches < self._batches_of_a_point:
            self._points[-1] = together([self._points[-1], point])
            return
        if len(self._points) == self._max_points:
            pairs = zip(self._points[::2], self._points[1::2], strict=True)
            self._points = [together(pair) for pair in pairs]
            self._batches_of_a_point *= 2
        self._points.append(point)

    @property
    def whole(self) -> Sequence[Point]:
        """The run from its start."""
        return self._points

    @property
    def recent(self) -> Sequence[Point]:
        """The latest batches, one by one."""
        return list(self._recent)

    def of_late(self, seconds: float, min_points: int = 5) -> Sequence[Point]:
        """Return the batches of so many seconds up to the latest end; more if these are fewer than `min_points`.

        The first batch of a run, in which workers start, is left out as soon as there are enough others.
        """
        recent = list(self._recent)
        if min_points < len(recent) == self._batches:
            recent = recent[1:]
        since = recent[-1].ended - seconds if recent else 0.0
        late = [point for point in recent if point.ended >= since]
        return late if len(late) >= min_points else recent[-min_points:]
