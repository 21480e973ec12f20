"""Everything that is known about a running pipeline, for whoever asks: a page, a scraper, a probe of its health."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from semistream import __version__
from semistream.pipeline.live.about import AboutPipeline
from semistream.pipeline.live.backlog import backlog_of
from semistream.pipeline.live.durations import short_duration
from semistream.pipeline.live.history import History
from semistream.pipeline.live.master_watch import MasterFacts, age_seconds
from semistream.pipeline.live.operators import Operators
from semistream.pipeline.live.points import COLUMNS, Point, together
from semistream.pipeline.live.verdict import Situation, bottleneck, verdict_on
from semistream.spark.batch_progress import BatchProgress, MirrorNumbers
from semistream.spark.prometheus_metrics import PrometheusMetrics, labelled

_LATE_SECONDS = 60.0
_SUMS = ("rows_in", "rows_out", "batches", "seconds")


class LiveBoard:
    """Is told each batch, and answers from memory that does not grow. May be called from any thread."""

    def __init__(
        self,
        pipeline: AboutPipeline,
        masters: Callable[[], Sequence[MasterFacts]] = list,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._pipeline = pipeline
        self._masters = masters
        self._mirrors: Callable[[], Mapping[str, MirrorNumbers]] = dict
        self._now = now
        self._started = now()
        self._lock = threading.Lock()
        self._history = History()
        self._operators = Operators(tells_keys=pipeline.tells_keys)
        self._metrics = PrometheusMetrics()
        self._totals: dict[str, float] = dict.fromkeys(_SUMS, 0)
        self._last: BatchProgress | None = None
        self._running_since: float | None = None
        self._running_after: int | None = None

    def follow_mirrors(self, numbers: Callable[[], Mapping[str, MirrorNumbers]]) -> None:
        """Tell the refreshes of master tables from now on, by their addresses."""
        self._mirrors = numbers

    def add(self, batch: BatchProgress) -> None:
        """Take in a batch that has ended."""
        with self._lock:
            point = Point.of(batch, self._now())
            self._history.add(point)
            for name in _SUMS:
                self._totals[name] += getattr(point, name)
            self._operators.add(batch)
            self._metrics.add(batch)
            self._last = batch
            self._running_since = None

    def note_running(self, is_running: bool) -> None:
        """Learn whether a batch is running at this moment; to be told about once a second."""
        with self._lock:
            ended = None if self._last is None else self._last.batch_id
            if not is_running:
                self._running_since = None
            elif self._running_since is None or ended != self._running_after:
                self._running_since, self._running_after = self._now(), ended

    def complaints(self) -> list[str]:
        """Return why the pipeline is not healthy, a sentence each; none if it is."""
        with self._lock:
            return self._complaints()

    def state(self) -> dict[str, Any]:
        """Return all that the page shows."""
        with self._lock:
            now, history = self._now(), self._history
            late = history.of_late(_LATE_SECONDS)
            backlog = backlog_of(late)
            complaints = self._complaints()
            situation = Situation(
                late,
                backlog,
                self._pipeline.trigger_seconds,
                self._pipeline.available_now,
                self._running_seconds(),
                complaints,
                self._operators.gain_of_twice(),
            )
            slowest = bottleneck(late)
            return {
                "version": __version__,
                "pipeline": self._pipeline.name,
                "source": self._pipeline.source,
                "sink": self._pipeline.sink,
                "now": now,
                "started": self._started,
                "healthy": not complaints,
                "verdict": asdict(verdict_on(situation)),
                "running_seconds": self._running_seconds(),
                "totals": dict(self._totals),
                "late": _as_object(together(late)) if late else None,
                "bottleneck": slowest[0] if slowest is not None else None,
                "backlog": asdict(backlog) if backlog is not None else None,
                "last": self._last.rows() if self._last is not None else [],
                "operators": self._operators.state(),
                "masters": self._master_rows(now),
                "columns": COLUMNS,
                "recent": [point.row() for point in history.recent],
                "whole": [point.row() for point in history.whole],
            }

    def metrics(self) -> str:
        """Return the metrics in Prometheus' format, with those that change while no batch ends."""
        with self._lock:
            query = labelled(query=self._pipeline.name)
            set_value = self._metrics.set
            set_value("up", "1 while the pipeline runs.", query, 1)
            set_value("healthy", "1 unless /health complains.", query, 0 if self._complaints() else 1)
            set_value("start_timestamp_seconds", "Time at which the pipeline started.", query, self._started)
            set_value(
                "running_batch_seconds", "Time that the running micro-batch has taken.", query, self._running_seconds()
            )
            for master in self._master_rows(self._now()):
                labels = labelled(query=self._pipeline.name, table=master["name"])
                if master["age_seconds"] is not None:
                    set_value("master_age_seconds", "Age of the master table.", labels, master["age_seconds"])
                if master["pins"] is not None:
                    set_value("master_pins", "Versions of the master table that are pinned.", labels, master["pins"])
            return self._metrics.text()

    def _running_seconds(self) -> float:
        return 0.0 if self._running_since is None else max(0.0, self._now() - self._running_since)

    def _complaints(self) -> list[str]:
        said, bound = [], self._pipeline.max_batch_seconds
        running, last = self._running_seconds(), self._last
        if bound is not None and running > bound:
            said.append(f"A batch has been running for {short_duration(running)}, longer than {short_duration(bound)}.")
        elif bound is not None and last is not None and last.seconds > bound and self._ended_within(bound):
            said.append(f"The last batch took {short_duration(last.seconds)}, longer than {short_duration(bound)}.")
        oldest = self._pipeline.max_master_age_seconds
        for master in self._master_rows(self._now()) if oldest is not None else ():
            age = master["age_seconds"]
            if age is not None and oldest is not None and age > oldest:
                allowed = f"older than {short_duration(oldest)}"
                said.append(f"The master table {master['name']} is {short_duration(age)} old, {allowed}.")
        return said

    def _ended_within(self, seconds: float) -> bool:
        """Say whether the last batch ended so long ago at most; a stream that falls silent is well again by then."""
        recent = self._history.recent
        return bool(recent) and self._now() - recent[-1].ended <= seconds

    def _master_rows(self, now: float) -> list[dict[str, Any]]:
        """Return the facts of each master table; a mirror is as old as its last look at the source."""
        mirrors, rows = self._mirrors(), []
        for facts in self._masters():
            row = {**asdict(facts), "age_seconds": age_seconds(facts, now)}
            mirror = mirrors.get(row.pop("address"))
            rows.append(row if mirror is None else {**row, "is_mirror": True, **asdict(mirror)})
        return rows


def _as_object(point: Point) -> Mapping[str, object]:
    return dict(zip(COLUMNS, point.row(), strict=True))
