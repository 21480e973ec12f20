"""What the tasks of a micro-batch have counted, on its way from the workers to the driver."""

from __future__ import annotations

import json
import os
import socket
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeAlias

from semistream.core.latencies import Latencies
from semistream.core.stats import JoinStats

METRIC_PREFIX = "semistream:"
"""What the names of observed metrics start with; the name of the operator follows."""
TASKS_FIELD = "tasks"
"""The field of the observed metric: one JSON text for each task."""
CACHE_SIZES = (1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2, 5 / 8, 3 / 4, 7 / 8, 1.0)
"""The shares of a cache for which tasks tell now and then how many hits such a smaller cache would have had."""

CountedKeys: TypeAlias = Sequence[tuple[str, int]]
"""Keys as texts with how many tuples had them at least, the most frequent first."""


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
    read_seconds: float
    """Of it, the time in reads of master data."""
    input_seconds: float
    """Time that the operator waited for rows: the source, and the steps before."""
    output_seconds: float
    """Time that it took to hand rows on: the steps after, and the sink."""
    memory_bytes: int
    """What is held of the budget."""
    memory_by_component: dict[str, int]
    budget_bytes: int
    resident_bytes: int
    """The memory of the worker process."""
    cached_rows: int
    warm_rows: int
    """Rows that a new cache has taken over from an earlier one."""
    returned: int
    """Rows that came back from the room."""
    waiting: int
    """Rows of the slot that wait in the room after the micro-batch."""
    parked: int
    """Rows of the slot that are parked after the micro-batch."""
    released: int
    """Rows that were parked and have left."""
    dead: int
    """Rows without a match that went to the dead letters by way of the room."""
    oldest_seconds: float
    """How long ago the oldest row came that the micro-batch left in the room."""
    latencies: dict[str, int]
    """How long rows took from their first arrival to their leaving, as counts of `Latencies`."""
    max_latency_seconds: float
    hits_by_size: Sequence[int]
    """Of some hits, those that caches of CACHE_SIZES would have had, too; empty most of the time."""
    hot_keys: CountedKeys
    """The keys that most tuples had, if they are asked for."""
    unmatched_keys: CountedKeys
    """The absent keys that most tuples had, if they are asked for."""
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
    "returned",
    "waiting",
    "parked",
    "released",
    "dead",
    "read_seconds",
    "input_seconds",
    "output_seconds",
)
_NOTHING: Mapping[str, Any] = {"memory_by_component": {}}
NOT_FLAT = ("memory_parts", "hits_by_size", "hot_keys", "unmatched_keys")
"""Fields that are no single value, and are left out of flat objects."""
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
    returned: int
    waiting: int
    parked: int
    released: int
    dead: int
    oldest_seconds: float
    latency_p50_seconds: float
    latency_p99_seconds: float
    max_latency_seconds: float
    memory_bytes: int
    budget_bytes: int
    resident_bytes: int
    cached_rows: int
    seconds: float
    """The time of the slowest task inside the operator."""
    task_seconds: float
    """The time of all tasks inside the operator."""
    read_seconds: float
    """Of the time of all tasks, the time in reads of master data."""
    input_seconds: float
    """The time that all tasks waited for rows."""
    output_seconds: float
    """The time that all tasks took to hand rows on."""
    memory_parts: Mapping[str, int] = field(default_factory=dict)
    """What parts hold of the budget, in the worker that holds most."""
    hits_by_size: Sequence[int] = ()
    """Of some hits, those that caches of CACHE_SIZES would have had, too; empty in most batches."""
    hot_keys: CountedKeys = ()
    unmatched_keys: CountedKeys = ()

    @classmethod
    def of(cls, name: str, tasks: Sequence[str]) -> BatchStatistics:
        """Return the sum of what tasks have sent."""
        reports: list[dict[str, Any]] = [json.loads(task) for task in tasks]
        busy = [task for task in reports if task["tuples_in"]] or reports
        sizes = [task["hits_by_size"] for task in reports if task["hits_by_size"]]
        latencies = Latencies.together(task["latencies"] for task in reports)
        slowest = max((task["max_latency_seconds"] for task in reports), default=0.0)
        return cls(
            name=name,
            query_id=next((task["query_id"] for task in reports), ""),
            batch_id=next((task["batch_id"] for task in reports), -1),
            tasks=len(reports),
            processes=len({(task["host"], task["process_id"]) for task in reports}),
            **{name: sum(task[name] for task in reports) for name in _SUMMED},
            **{name: max((task[name] for task in busy), default=0) for name in _LARGEST},
            oldest_seconds=max((task["oldest_seconds"] for task in reports), default=0.0),
            max_latency_seconds=slowest,
            # They are counted by steps, whose middle may be above the slowest row.
            latency_p50_seconds=min(slowest, latencies.quantile(0.5)),
            latency_p99_seconds=min(slowest, latencies.quantile(0.99)),
            seconds=max((task["seconds"] for task in reports), default=0.0),
            task_seconds=sum(task["seconds"] for task in reports),
            memory_parts=max(busy, key=lambda task: task["memory_bytes"], default=_NOTHING)["memory_by_component"],
            hits_by_size=tuple(map(sum, zip(*sizes, strict=True))),
            hot_keys=_added(task["hot_keys"] for task in reports),
            unmatched_keys=_added(task["unmatched_keys"] for task in reports),
        )

    @property
    def hit_rate(self) -> float:
        """The share of stream tuples that were answered from the cache."""
        return self.cache_hits / self.tuples_in if self.tuples_in else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the statistics as a flat object, without what is not a single value."""
        flat = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in NOT_FLAT}
        return {**flat, "hit_rate": self.hit_rate}


def _added(counted: Iterable[CountedKeys]) -> CountedKeys:
    """Return the keys of several tasks with their counts together, the most frequent first."""
    total: Counter[str] = Counter()
    for keys in counted:
        for key, count in keys:
            total[key] += count
    return tuple(total.most_common())


def of_progress(observed: Any) -> list[BatchStatistics]:
    """Return the statistics of every dimension from the observed metrics of a query's progress, or of a batch."""
    batches = []
    for metric, row in dict(observed).items():
        if metric.startswith(METRIC_PREFIX):
            try:
                tasks = row[TASKS_FIELD]
            except (KeyError, ValueError):  # Spark Connect gives the values of the row without their names
                tasks = row["values"][0]
            by_name: dict[str, list[str]] = {}
            for task in tasks or []:
                by_name.setdefault(json.loads(task)["name"], []).append(task)
            told = by_name or {metric.removeprefix(METRIC_PREFIX): []}
            batches += [BatchStatistics.of(name, of_name) for name, of_name in told.items()]
    return batches


def resident_bytes() -> int:
    """Return the memory of this process that is in RAM."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
