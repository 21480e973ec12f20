"""Says in a sentence whether a pipeline keeps up, and what holds it back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeAlias

from semistream.pipeline.live.backlog import Backlog
from semistream.pipeline.live.durations import short_duration
from semistream.pipeline.live.points import Point, together

Level: TypeAlias = Literal["good", "busy", "bad", "idle"]
_FULL = 0.95
"""From this share of the time on a pipeline is busy all the time."""
_WORTH_MENTIONING = 0.02
_UNUSUAL = 5
_ENOUGH = 4
"""From so many batches on those in which workers start do not decide."""
_MIN_UNUSUAL_SECONDS = 20.0

_NAMES = {
    "source": "waiting for rows from the source",
    "reads": "reads of the master table",
    "python": "the join in Python",
    "sink": "the sink and Spark's own work",
    "planning": "planning and finding out what is new",
    "commit": "writing the checkpoint",
}
_REMEDIES = {
    "source": "Rows come slowly: look at the source, or let more tasks read it.",
    "reads": "More memory lets the cache answer more.",
    "python": "More cores share this work.",
    "sink": "Look at what the sink does, or write larger batches.",
    "planning": "Larger batches, by a longer trigger interval, pay this less often.",
    "commit": "Larger batches, by a longer trigger interval, pay this less often.",
}


@dataclass(frozen=True)
class Verdict:
    """Whether a pipeline keeps up: a level, a short sentence, and what else is worth knowing."""

    level: Level
    headline: str
    detail: str


@dataclass(frozen=True)
class Situation:
    """What a verdict is made of."""

    points: Sequence[Point]
    """The recent batches."""
    backlog: Backlog | None
    trigger_seconds: float
    """The time between triggers; 0 starts a batch as soon as there are rows."""
    available_now: bool
    running_seconds: float
    """How long the batch has been running that runs now; 0 if none does."""
    complaints: Sequence[str]
    """Why the pipeline is not healthy."""
    gain_of_twice: float | None
    """The share of rows that twice the cache would answer without a read, if that is known."""


def verdict_on(now: Situation) -> Verdict:
    """Return the verdict on a situation."""
    if now.complaints:
        return Verdict("bad", now.complaints[0], " ".join([*now.complaints[1:], _spent(now.points)]).strip())
    if not now.points:
        running = f"It has been running for {short_duration(now.running_seconds)}." if now.running_seconds else ""
        return Verdict("idle", "Waiting for the first batch to end.", running)
    backlog, detail = now.backlog, _spent(now.points)
    if backlog is not None and backlog.trend == "growing":
        grows = f"{_count(backlog.per_second, backlog.unit)} a second"
        return Verdict("bad", f"Falls behind: the backlog grows by {grows}.", f"{detail} {_remedy(now)}".strip())
    if backlog is not None and backlog.trend == "shrinking" and backlog.drain_seconds is not None:
        gone = short_duration(backlog.drain_seconds)
        return Verdict("busy", f"Catching up: the backlog will be gone in about {gone}.", detail)
    if (usual := _usual_seconds(now.points)) * _UNUSUAL < now.running_seconds > _MIN_UNUSUAL_SECONDS:
        lasts = f"lasts {short_duration(now.running_seconds)} already, and they take {short_duration(usual)} as a rule"
        return Verdict("busy", f"The batch that runs now {lasts}.", detail)
    if now.available_now:
        left = f" {_count(backlog.amount, backlog.unit)} left." if backlog is not None and backlog.amount else ""
        return Verdict("busy", f"Working off what was there at the start.{left}", detail)
    if backlog is None and 0 < now.trigger_seconds < usual and len(now.points) < _ENOUGH:
        took = f"the first {'batch' if len(now.points) == 1 else 'batches'} took {short_duration(usual)}"
        return Verdict("busy", f"Starting: {took}, in which workers start and caches are empty.", detail)
    if backlog is None and 0 < now.trigger_seconds < usual:
        took = f"a batch takes {short_duration(usual)}, and one is due every {short_duration(now.trigger_seconds)}"
        return Verdict("bad", f"Too slow for its trigger: {took}.", f"{detail} {_remedy(now)}".strip())
    if backlog is None and not now.trigger_seconds and _busy_share(now.points) >= _FULL:
        headline = "Busy all the time; the source does not tell whether rows wait."
        return Verdict("busy", headline, f"{detail} {_remedy(now)}".strip())
    return Verdict("good", "Keeps up.", f"{_spare(now)} {detail}".strip())


def bottleneck(points: Sequence[Point]) -> tuple[str, float] | None:
    """Return the part that takes most of the batches' time, and its share; None without any time."""
    whole = together(points) if points else None
    if whole is None or whole.seconds <= 0:
        return None
    part = max(_NAMES, key=lambda name: getattr(whole, name))
    return part, getattr(whole, part) / whole.seconds


def _spent(points: Sequence[Point]) -> str:
    most = bottleneck(points)
    if most is None:
        return ""
    part, share = most
    return f"Most of a batch's time goes to {_NAMES[part]} ({share:.0%})."


def _remedy(now: Situation) -> str:
    most = bottleneck(now.points)
    if most is None:
        return ""
    if most[0] == "reads" and now.gain_of_twice is not None and now.gain_of_twice < _WORTH_MENTIONING:
        return "Twice the memory would save few of them: a faster store or a tier on the local disk would."
    return _REMEDIES[most[0]]


def _spare(now: Situation) -> str:
    if now.trigger_seconds:
        usual, between = _usual_seconds(now.points), short_duration(now.trigger_seconds)
        if usual > now.trigger_seconds:
            return f"A batch takes {short_duration(usual)}, longer than the {between} between triggers."
        return f"A batch takes {short_duration(usual)} of the {between} between triggers."
    busy = _busy_share(now.points)
    return f"Busy {busy:.0%} of the time." if len(now.points) > 1 else ""


def _usual_seconds(points: Sequence[Point]) -> float:
    return median(point.seconds / point.batches for point in points)


def _busy_share(points: Sequence[Point]) -> float:
    whole = together(points)
    lasted = whole.ended - whole.began
    return min(1.0, whole.seconds / lasted) if lasted > 0 else 0.0


def _count(amount: float, unit: str) -> str:
    number = f"{amount:,.0f}" if amount >= 10 else f"{amount:.2g}"
    return f"{number} {unit.removesuffix('s') if number == '1' else unit}"
