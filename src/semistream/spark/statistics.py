"""What the tasks of a micro-batch have counted, on its way from the workers to the driver."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from semistream.core.stats import JoinStats

METRIC_PREFIX = "semistream:"
"""What the names of observed metrics start with; the name of the operator follows."""
TASKS_FIELD = "tasks"
"""The field of the observed metric: one JSON text for each task."""


@dataclass(frozen=True)
class TaskStatistics:
    """What one task has counted; leaves the worker as JSON in a row of its own."""

    name: str
    query_id: str
    batch_id: int
    version: int
    """The version of the master table, 0 if the task had no row."""
    tuples_in: int
    tuples_out: int
    rows_out: int
    cache_hits: int
    read_hits: int
    shadow_hits: int
    """Of the read hits, those that a cache of twice the size would have answered."""
    absent: int
    null_keys: int
    refused: int
    page_reads: int
    read_requests: int
    bytes_read: int
    cache_admissions: int
    cache_evictions: int
    remote_requests: int
    remote_bytes: int
    tier_hits: int
    tier_misses: int
    tier_blocks: int
    tier_failures: int
    tier_bytes: int
    """What the tier takes on the disk of the executor."""
    seconds: float
    """Time inside the operator, without the time that Spark took to hand rows over."""
    memory_bytes: int
    """What is held of the budget."""
    memory_by_component: dict[str, int]
    budget_bytes: int
    resident_bytes: int
    """The memory of the worker process."""
    cached_rows: int
    warm_rows: int
    """Rows that a new cache has taken over from an earlier one."""
    process_id: int
    host: str

    @classmethod
    def counted(cls, counters: JoinStats, **others: Any) -> TaskStatistics:
        """Return statistics from the counters of a join and what a join does not know."""
        shared = {f.name for f in fields(cls)} & {f.name for f in fields(JoinStats)} - {"memory_bytes"}
        return cls(
            **{name: getattr(counters, name) for name in shared},
            memory_by_component=dict(counters.memory_bytes),
            resident_bytes=resident_bytes(),
            process_id=os.getpid(),
            host=socket.gethostname(),
            **others,
        )

    def as_json(self) -> str:
        """Return the statistics as one line."""
        return json.dumps(asdict(self), separators=(",", ":"))


_SUMMED = (
    "tuples_in",
    "tuples_out",
    "rows_out",
    "cache_hits",
    "read_hits",
    "shadow_hits",
    "absent",
    "null_keys",
    "refused",
    "page_reads",
    "read_requests",
    "bytes_read",
    "cache_admissions",
    "cache_evictions",
    "remote_requests",
    "remote_bytes",
    "tier_hits",
    "tier_misses",
    "tier_blocks",
    "tier_failures",
    "warm_rows",
)
_LARGEST = ("version", "memory_bytes", "budget_bytes", "resident_bytes", "cached_rows", "tier_bytes")


@dataclass(frozen=True)
class BatchStatistics:
    """What all tasks of one operator have counted in a micro-batch: sums, and of memory the largest of a process."""

    name: str
    query_id: str
    batch_id: int
    tasks: int
    processes: int
    version: int
    tuples_in: int
    tuples_out: int
    rows_out: int
    cache_hits: int
    read_hits: int
    shadow_hits: int
    absent: int
    null_keys: int
    refused: int
    page_reads: int
    read_requests: int
    bytes_read: int
    cache_admissions: int
    cache_evictions: int
    remote_requests: int
    remote_bytes: int
    tier_hits: int
    tier_misses: int
    tier_blocks: int
    tier_failures: int
    tier_bytes: int
    warm_rows: int
    memory_bytes: int
    budget_bytes: int
    resident_bytes: int
    cached_rows: int
    seconds: float
    """The time of the slowest task inside the operator."""

    @classmethod
    def of(cls, name: str, tasks: Sequence[str]) -> BatchStatistics:
        """Return the sum of what tasks have sent."""
        reports: list[dict[str, Any]] = [json.loads(task) for task in tasks]
        busy = [task for task in reports if task["tuples_in"]] or reports
        return cls(
            name=name,
            query_id=next((task["query_id"] for task in reports), ""),
            batch_id=next((task["batch_id"] for task in reports), -1),
            tasks=len(reports),
            processes=len({(task["host"], task["process_id"]) for task in reports}),
            **{field: sum(task[field] for task in reports) for field in _SUMMED},
            **{field: max((task[field] for task in busy), default=0) for field in _LARGEST},
            seconds=max((task["seconds"] for task in reports), default=0.0),
        )

    @property
    def hit_rate(self) -> float:
        """The share of stream tuples that were answered from the cache."""
        return self.cache_hits / self.tuples_in if self.tuples_in else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the statistics as a flat object."""
        return {**asdict(self), "hit_rate": self.hit_rate}


def of_progress(observed: Any) -> list[BatchStatistics]:
    """Return the statistics of every operator from the observed metrics of a query's progress, or of a batch."""
    batches = []
    for metric, row in dict(observed).items():
        if metric.startswith(METRIC_PREFIX):
            try:
                tasks = row[TASKS_FIELD]
            except (KeyError, ValueError):  # Spark Connect gives the values of the row without their names
                tasks = row["values"][0]
            batches.append(BatchStatistics.of(metric.removeprefix(METRIC_PREFIX), tasks or []))
    return batches


def resident_bytes() -> int:
    """Return the memory of this process that is in RAM."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
