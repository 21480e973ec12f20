"""What queries have done, as metrics in Prometheus' text format."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from semistream.spark.batch_progress import BatchProgress

_COUNTERS = {
    "tuples_in": ("tuples_in_total", "Stream rows that came into the enrichment."),
    "tuples_out": ("tuples_out_total", "Stream rows that the enrichment has answered."),
    "rows_out": ("rows_out_total", "Rows that the enrichment has made."),
    "cache_hits": ("cache_hits_total", "Stream rows answered from the cache."),
    "read_hits": ("read_hits_total", "Stream rows answered by a read."),
    "shadow_hits": (
        "shadow_hits_total",
        "Of the rows answered by a read, those that twice the cache would have answered.",
    ),
    "absent": ("absent_total", "Stream rows whose key the master table does not have."),
    "null_keys": ("null_keys_total", "Stream rows with a null key."),
    "refused": ("refused_total", "Stream rows that were too large."),
    "page_reads": ("page_reads_total", "Pages read from the master table."),
    "read_requests": ("read_requests_total", "Requests to the store of the master table."),
    "bytes_read": ("read_bytes_total", "Bytes read from the master table."),
    "cache_admissions": ("cache_admissions_total", "Rows taken into the cache."),
    "cache_evictions": ("cache_evictions_total", "Rows that left the cache."),
    "remote_requests": ("remote_requests_total", "Requests for master data to an object store."),
    "remote_bytes": ("remote_bytes_total", "Bytes of master data that an object store has sent."),
    "tier_hits": ("tier_hits_total", "Stretches of master data found on the local disk."),
    "tier_misses": ("tier_misses_total", "Stretches of master data that were not on the local disk."),
    "tier_blocks": ("tier_blocks_total", "Blocks of master data fetched to the local disk."),
    "tier_failures": ("tier_failures_total", "Times that master data could not be kept on the local disk."),
    "warm_rows": ("warm_rows_total", "Rows loaded into a new worker's cache at its start."),
    "returned": ("returned_rows_total", "Rows that came back from the room."),
    "released": ("released_rows_total", "Parked rows that have left."),
    "dead": ("dead_rows_total", "Rows without a match that went to the dead letters by way of the room."),
    "seconds": ("operator_seconds_total", "Time of the slowest task of each batch in the enrichment."),
    "task_seconds": ("task_seconds_total", "Time of all tasks in the enrichment."),
    "read_seconds": ("read_seconds_total", "Time of all tasks in reads of the master table."),
    "input_seconds": ("input_seconds_total", "Time that all tasks waited for rows."),
    "output_seconds": ("output_seconds_total", "Time that all tasks took to hand rows on."),
}
_GAUGES = {
    "memory_bytes": ("memory_bytes", "Bytes held of the budget, in the worker that holds most."),
    "budget_bytes": ("budget_bytes", "The budget of a worker."),
    "resident_bytes": ("resident_bytes", "Resident memory of the largest worker."),
    "cached_rows": ("cached_rows", "Rows in the largest cache of a worker."),
    "tier_bytes": ("tier_bytes", "Bytes of master data on the local disk of an executor."),
    "waiting": ("waiting_rows", "Rows that wait in the room."),
    "parked": ("parked_rows", "Rows that are parked in the room."),
    "oldest_seconds": ("oldest_row_seconds", "How long ago the oldest row in the room came."),
    "latency_p50_seconds": ("latency_p50_seconds", "Median time of a row in the enrichment, in the last batch."),
    "latency_p99_seconds": ("latency_p99_seconds", "Time that 99 of 100 rows did not exceed, in the last batch."),
    "max_latency_seconds": ("max_latency_seconds", "Time of the slowest row, in the last batch."),
    "version": ("master_version", "Version of the master table in the last batch."),
}


_MIRROR = {
    "version": ("mirror_version", "Newest version of the mirror."),
    "age_seconds": ("mirror_age_seconds", "Time since the mirror was last known to be in step with its source."),
    "refreshes": ("mirror_refreshes_total", "Refreshes of the mirror that have succeeded."),
    "failures": ("mirror_failures_total", "Refreshes of the mirror that have failed."),
    "rows_upserted": ("mirror_upserted_rows_total", "Rows that refreshes have inserted or replaced."),
    "rows_deleted": ("mirror_deleted_rows_total", "Rows that refreshes have deleted."),
}
"""Counted since the start of the process, like all counters."""


@dataclass
class _Metric:
    kind: str
    text: str
    values: dict[str, float]


class PrometheusMetrics:
    """Counts over the batches of queries, and the latest values; counters begin at 0, which scrapers expect."""

    def __init__(self) -> None:
        self._metrics: dict[str, _Metric] = {}

    def add(self, batch: BatchProgress) -> None:
        """Count a batch."""
        labels = labelled(query=batch.query)
        self._count("batches_total", "Micro-batches that have ended.", labels, 1)
        self._count("input_rows_total", "Rows that came from the source.", labels, batch.rows_in)
        if batch.rows_out is not None:
            self._count("written_rows_total", "Rows that went to the sink.", labels, batch.rows_out)
        self._count("batch_seconds_total", "Time of all micro-batches.", labels, batch.seconds)
        self._count("planning_seconds_total", "Time to plan all micro-batches.", labels, batch.planning_seconds)
        self._count("commit_seconds_total", "Time to write the checkpoint's logs.", labels, batch.commit_seconds)
        self.set("last_batch_id", "Number of the last micro-batch.", labels, batch.batch_id)
        self.set("last_batch_seconds", "Time of the last micro-batch.", labels, batch.seconds)
        if (ended := ended_at(batch)) is not None:
            self.set("last_batch_timestamp_seconds", "Time at which the last micro-batch ended.", labels, ended)
        if batch.backlog is not None:
            self.set("backlog_rows", "Rows that wait in the source.", labels, batch.backlog)
        if batch.backlog_files is not None and batch.backlog_bytes is not None:
            self.set("backlog_files", "Files that wait in the source.", labels, batch.backlog_files)
            self.set("backlog_bytes", "Bytes of the files that wait in the source.", labels, batch.backlog_bytes)
        if batch.mirror is not None:
            for key, (metric, text) in _MIRROR.items():
                self.set(metric, text, labels, getattr(batch.mirror, key), kind=_kind(metric))
        for enrichment in batch.enrichments:
            counts = enrichment.as_dict()
            labels = labelled(query=batch.query, name=str(counts.get("name", "")))
            for key, (metric, text) in _COUNTERS.items():
                if isinstance(value := counts.get(key), int | float):
                    self._count(metric, text, labels, value)
            for key, (metric, text) in _GAUGES.items():
                if isinstance(value := counts.get(key), int | float):
                    self.set(metric, text, labels, value)

    def text(self) -> str:
        """Return all metrics."""
        lines = []
        for name, metric in self._metrics.items():
            lines += [f"# HELP semistream_{name} {metric.text}", f"# TYPE semistream_{name} {metric.kind}"]
            lines += [f"semistream_{name}{labels} {value:.15g}" for labels, value in metric.values.items()]
        return "".join(f"{line}\n" for line in lines)

    def _count(self, name: str, text: str, labels: str, value: float) -> None:
        values = self._metrics.setdefault(name, _Metric("counter", text, {})).values
        values[labels] = values.get(labels, 0) + value

    def set(self, name: str, text: str, labels: str, value: float, kind: str = "gauge") -> None:
        """Set a value that is not counted here."""
        self._metrics.setdefault(name, _Metric(kind, text, {})).values[labels] = value


def labelled(**labels: str) -> str:
    """Return labels as they stand behind the name of a metric."""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def ended_at(batch: BatchProgress) -> float | None:
    """Return when a batch ended, in seconds since 1970, or None if its report does not say when it began."""
    try:
        return datetime.fromisoformat(batch.timestamp).timestamp() + batch.seconds
    except ValueError:
        return None


def _kind(metric: str) -> str:
    return "counter" if metric.endswith("_total") else "gauge"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
