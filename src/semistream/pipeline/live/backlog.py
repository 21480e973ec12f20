"""What waits in the source, how fast that changes, and when it will be gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from semistream.pipeline.live.points import Point, together

_MIN_POINTS = 4
_NOTICEABLE = 0.01
"""A change by less than this share of what comes in is none."""

Trend: TypeAlias = Literal["unknown", "none", "steady", "growing", "shrinking"]


@dataclass(frozen=True)
class Backlog:
    """What waits in the source, in rows if it tells them, else in files."""

    unit: Literal["rows", "files"]
    amount: int
    per_second: float
    """By how much it grows, or shrinks."""
    trend: Trend
    drain_seconds: float | None
    """When it will be gone if it goes on so; None if it will not."""


def backlog_of(points: Sequence[Point]) -> Backlog | None:
    """Return the backlog after some batches; None if the source does not tell it.

    The change is that of a straight line through the backlogs after the batches, so that a single burst does not count
    for much.
    """
    rows = [(point.ended, point.backlog) for point in points if point.backlog is not None]
    if rows:
        seconds = points[-1].ended - points[0].began
        whole = together(points)
        flow = whole.rows_in / seconds if seconds > 0 else 0.0
        # What the next batch will take is no reason to worry.
        return _backlog("rows", rows, _NOTICEABLE * flow, usual=whole.rows_in / whole.batches)
    files = [(point.ended, point.backlog_files) for point in points if point.backlog_files is not None]
    # Nobody knows how many files a second come in: two more than before in all this time are noticed.
    return _backlog("files", files, 2 / max(1.0, files[-1][0] - files[0][0]), usual=1) if files else None


def _backlog(
    unit: Literal["rows", "files"], counts: Sequence[tuple[float, int]], noticeable: float, *, usual: float
) -> Backlog:
    amount, change = counts[-1][1], _slope(counts)
    if not amount:
        return Backlog(unit, 0, change or 0.0, "none", 0.0)
    if change is None:
        return Backlog(unit, amount, 0.0, "unknown", None)
    if abs(change) <= noticeable or amount <= usual:
        return Backlog(unit, amount, change, "steady", None)
    if change > 0:
        return Backlog(unit, amount, change, "growing", None)
    return Backlog(unit, amount, change, "shrinking", amount / -change)


def _slope(counts: Sequence[tuple[float, int]]) -> float | None:
    """Return the change a second of the line that fits best, or None if there are too few points."""
    if len(counts) < _MIN_POINTS:
        return None
    mean_time = sum(time for time, _ in counts) / len(counts)
    mean_count = sum(count for _, count in counts) / len(counts)
    spread = sum((time - mean_time) ** 2 for time, _ in counts)
    if spread <= 0:
        return None
    return sum((time - mean_time) * (count - mean_count) for time, count in counts) / spread
