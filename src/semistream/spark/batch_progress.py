"""What Spark tells about the micro-batches of a query, together with what the enrichment counted in them."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql.streaming.listener import StreamingQueryListener

from semistream.core.errors import InvalidSettingError
from semistream.spark.room.names import OFFSET_FIELDS
from semistream.spark.statistics import BatchStatistics, of_progress

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

ROWS_WRITTEN = "semistream rows written"
"""The name of the observation that counts what goes to the sink, which file sinks do not tell."""

Scalar: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True)
class MirrorNumbers:
    """What the refreshes of a mirror have done since the pipeline was started."""

    version: int
    """The newest version."""
    age_seconds: float = 0.0
    """How long ago the mirror was last known to be in step with its source."""
    refreshes: int = 0
    failures: int = 0
    rows_upserted: int = 0
    rows_deleted: int = 0


_PLANNING = ("latestOffset", "getBatch", "queryPlanning")
_COMMITS = ("walCommit", "commitOffsets")
"""Spark's names of what a trigger spends time on, besides addBatch."""
_MIRROR_FIELDS = ("version", "age_seconds", "refreshes", "failures", "rows_upserted", "rows_deleted")


@dataclass(frozen=True)
class BatchProgress:
    """One micro-batch: what came in, what went out, how long it took, and the counts of each enrichment."""

    query: str
    query_id: str
    batch_id: int
    timestamp: str
    rows_in: int
    rows_out: int | None
    seconds: float
    add_batch_seconds: float
    backlog: int | None
    """Rows that wait in the source, if the source tells."""
    enrichments: tuple[BatchStatistics, ...]
    backlog_files: int | None = None
    """Files that wait in the source, if it is a folder that a pipeline reads."""
    backlog_bytes: int | None = None
    mirror: MirrorNumbers | None = None
    """The master table's refreshes, if the pipeline does them."""
    planning_seconds: float = 0.0
    """Time to find out what is new in the source, and to plan the batch."""
    commit_seconds: float = 0.0
    """Time to write the checkpoint's logs."""

    @property
    def rows_in_per_second(self) -> float:
        """Rows that came in, by the time of the whole batch."""
        return self.rows_in / self.seconds if self.seconds else 0.0

    @property
    def rows_out_per_second(self) -> float:
        """Rows that went to the sink, by the time of the whole batch."""
        return (self.rows_out or 0) / self.seconds if self.seconds else 0.0

    def rows(self) -> list[dict[str, Scalar]]:
        """Return flat objects for files: one an enrichment, or one without counts if the batch had none.

        Numbers that JSON does not have are None.
        """
        batch: dict[str, Scalar] = {
            "query": self.query,
            "query_id": self.query_id,
            "batch_id": self.batch_id,
            "timestamp": self.timestamp,
            "batch_rows_in": self.rows_in,
            "batch_rows_out": self.rows_out,
            "batch_seconds": self.seconds,
            "add_batch_seconds": self.add_batch_seconds,
            "planning_seconds": self.planning_seconds,
            "commit_seconds": self.commit_seconds,
            "backlog": self.backlog,
            "backlog_files": self.backlog_files,
            "backlog_bytes": self.backlog_bytes,
            **{f"mirror_{name}": getattr(self.mirror, name, None) for name in _MIRROR_FIELDS},
        }
        rows = [{**batch, **one.as_dict(), **batch} for one in self.enrichments] or [batch]
        return [{name: _finite(value) for name, value in row.items()} for row in rows]


class ProgressListener(StreamingQueryListener):
    """Hands the finished micro-batches of one query on, in their order, from a thread of its own.

    An error in `on_batch` must not stop the query: the first one is kept in `error`, and the batches go on.
    """

    def __init__(self, query: str, on_batch: Callable[[BatchProgress], None]) -> None:
        self._query = query
        self._on_batch = on_batch
        self._run_id: str | None = None
        self.error: Exception | None = None
        self.finished = threading.Event()
        """Set when the query has ended and all its batches have been handed on."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Remember the run, because the event of its end does not tell its name."""
        if event.name == self._query:
            self._run_id = str(event.runId)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Hand a batch on."""
        if event.progress.name != self._query:
            return
        try:
            self._on_batch(batch_progress(event.progress))
        except Exception as error:
            self.error = self.error or error

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing: nothing has happened."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Say that no more batches will come."""
        if str(event.runId) == self._run_id:
            self.finished.set()


def progress(query: Any) -> list[BatchProgress]:
    """Return what the latest micro-batches of a streaming query have done, oldest first.

    Each batch has its rows and times, and in `enrichments` the counters of every `enrich` in it: `name`, `version` of
    the master table, `tuples_in`, `cache_hits`, `read_hits`, `absent`, `hit_rate`, `bytes_read`, `memory_bytes` and
    others. `rows()` returns the same as flat dicts. Triggers that found no data are left out.

    Args:
        query: A StreamingQuery, whose recent progress is read, or one progress report, as `query.lastProgress` or a
            StreamingQueryListener gives it.
    """
    if query is None:
        return []  # lastProgress before the first batch
    reports = query.recentProgress if hasattr(query, "recentProgress") else [query]
    if not all(hasattr(report, "observedMetrics") for report in reports):
        raise InvalidSettingError(
            f"An object of type {type(query).__name__} has no progress: give a StreamingQuery or one of its progress "
            f"reports."
        )
    # What ran no batch tells no time of one.
    return [batch_progress(report) for report in reports if "addBatch" in (report.durationMs or {})]


def batch_progress(progress: Any) -> BatchProgress:
    """Return what Spark's progress report of a query says about its batch."""
    observed: Mapping[str, Any] = progress.observedMetrics or {}
    written = observed.get(ROWS_WRITTEN)
    durations = progress.durationMs or {}
    return BatchProgress(
        query=progress.name,
        query_id=str(progress.id),
        batch_id=progress.batchId,
        timestamp=progress.timestamp,
        rows_in=progress.numInputRows - _tickets(progress.sources),
        rows_out=None if written is None else int(written["rows"]),
        seconds=durations.get("triggerExecution", 0) / 1000,
        add_batch_seconds=durations.get("addBatch", 0) / 1000,
        backlog=_backlog(progress.sources),
        enrichments=tuple(one for one in of_progress(observed) if one.tasks),
        planning_seconds=sum(durations.get(name, 0) for name in _PLANNING) / 1000,
        commit_seconds=sum(durations.get(name, 0) for name in _COMMITS) / 1000,
    )


def _finite(value: Scalar) -> Scalar:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _tickets(sources: Any) -> int:
    """Return how many of the rows that came in are tickets of a room, which users know nothing of."""
    return sum(source.numInputRows for source in sources if _is_room(source))


def _is_room(source: Any) -> bool:
    """Say whether a source is a room, which only its offsets tell."""
    try:
        end = json.loads(source.endOffset or "null")
    except ValueError:
        return False
    return isinstance(end, dict) and set(end) == set(OFFSET_FIELDS)


def _backlog(sources: Any) -> int | None:
    """Return how many rows wait in sources that tell their latest offset, or None if none does."""
    known = []
    for source in sources:
        if _is_room(source):
            continue
        try:
            latest, end = json.loads(source.latestOffset or "null"), json.loads(source.endOffset or "null")
        except ValueError:
            continue
        if isinstance(latest, dict) and isinstance(end, dict):
            known.append(_distance(latest, end))
    return sum(known) if known else None


def _distance(latest: Mapping[str, Any], end: Mapping[str, Any]) -> int:
    """Return the sum of differences of all numbers in two offsets of the same form."""
    total = 0
    for name, value in latest.items():
        other = end.get(name, 0)
        if isinstance(value, dict):
            total += _distance(value, other if isinstance(other, dict) else {})
        elif isinstance(value, int) and isinstance(other, int):
            total += max(0, value - other)
    return total
