"""Moments of a run: what one micro-batch did, or several that were put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from typing import TypeAlias

from semistream.pipeline.live.time_split import TimeSplit
from semistream.spark.batch_progress import BatchProgress
from semistream.spark.prometheus_metrics import ended_at

Number: TypeAlias = int | float | None


@dataclass(frozen=True)
class Point:
    """What happened between two times: sums of counts, the latest backlog, and the largest memory."""

    began: float
    """Seconds since 1970."""
    ended: float
    batches: int
    rows_in: int
    rows_out: int
    seconds: float
    planning: float
    source: float
    reads: float
    python: float
    sink: float
    commit: float
    tuples: int
    cache_hits: int
    read_hits: int
    absent: int
    shadow_hits: int
    read_requests: int
    bytes_read: int
    memory_bytes: int
    backlog: int | None
    backlog_files: int | None
    backlog_bytes: int | None

    @classmethod
    def of(cls, batch: BatchProgress, now: float) -> Point:
        """Return what a batch did; one that does not say when it began has just ended."""
        ended = ended_at(batch)
        ended = now if ended is None else ended
        split = TimeSplit.of(batch)
        one = batch.enrichments
        return cls(
            began=ended - batch.seconds,
            ended=ended,
            batches=1,
            rows_in=batch.rows_in,
            rows_out=batch.rows_out or 0,
            seconds=batch.seconds,
            planning=split.planning,
            source=split.source,
            reads=split.reads,
            python=split.python,
            sink=split.sink,
            commit=split.commit,
            tuples=sum(each.tuples_in for each in one),
            cache_hits=sum(each.cache_hits for each in one),
            read_hits=sum(each.read_hits for each in one),
            absent=sum(each.absent for each in one),
            shadow_hits=sum(each.shadow_hits for each in one),
            read_requests=sum(each.read_requests for each in one),
            bytes_read=sum(each.bytes_read for each in one),
            memory_bytes=max((each.memory_bytes for each in one), default=0),
            backlog=batch.backlog,
            backlog_files=batch.backlog_files,
            backlog_bytes=batch.backlog_bytes,
        )

    def row(self) -> list[Number]:
        """Return the values in the order of COLUMNS, times rounded to milliseconds."""
        return [round(value, 3) if isinstance(value, float) else value for value in astuple(self)]


COLUMNS = tuple(field.name for field in fields(Point))
_LATEST = ("ended", "backlog", "backlog_files", "backlog_bytes")
_SUMMED = tuple(name for name in COLUMNS if name not in (*_LATEST, "began", "memory_bytes"))


def together(points: Sequence[Point]) -> Point:
    """Return points that follow each other as one."""
    last = points[-1]
    return Point(
        began=points[0].began,
        memory_bytes=max(point.memory_bytes for point in points),
        **{name: getattr(last, name) for name in _LATEST},
        **{name: sum(getattr(point, name) for point in points) for name in _SUMMED},
    )
