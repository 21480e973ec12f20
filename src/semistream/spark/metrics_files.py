"""Files that tell how queries are doing: JSON lines for people and scripts, Prometheus text for scrapers."""

from __future__ import annotations

import errno
import json
import math
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from semistream.core.errors import InvalidSettingError
from semistream.spark.batch_progress import BatchProgress, Scalar

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
    "seconds": ("operator_seconds_total", "Time of the slowest task of each batch in the enrichment."),
}
_GAUGES = {
    "memory_bytes": ("memory_bytes", "Bytes held of the budget, in the worker that holds most."),
    "budget_bytes": ("budget_bytes", "The budget of a worker."),
    "resident_bytes": ("resident_bytes", "Resident memory of the largest worker."),
    "cached_rows": ("cached_rows", "Rows in the largest cache of a worker."),
    "tier_bytes": ("tier_bytes", "Bytes of master data on the local disk of an executor."),
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


class JsonLinesFile:
    """A file that gets one flat object a line for each batch."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._prepare()

    def add(self, batch: BatchProgress) -> None:
        """Append a batch; raises OSError if the disk is full."""
        rows = ({name: _finite(value) for name, value in row.items()} for row in batch.rows())
        lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
        file = self._open()
        try:
            if os.write(file, lines) < len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        finally:
            os.close(file)

    def _prepare(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            os.close(self._open())
        except OSError as error:
            raise _unwritable("json_lines", self._path, error) from None

    def _open(self) -> int:
        # Opened anew for each batch, so that whoever rotates the file needs to tell nobody; links are not followed.
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)


class PrometheusFile:
    """A text file in Prometheus' format that is always whole: each batch replaces it.

    Counters begin at 0 with each start of the process, which is what scrapers expect.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._metrics: dict[str, _Metric] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write()
        except OSError as error:
            raise _unwritable("prometheus", path, error) from None

    def add(self, batch: BatchProgress) -> None:
        """Count a batch and write the file anew."""
        labels = f'{{query="{_escaped(batch.query)}"}}'
        self._count("batches_total", "Micro-batches that have ended.", labels, 1)
        self._count("input_rows_total", "Rows that came from the source.", labels, batch.rows_in)
        if batch.rows_out is not None:
            self._count("written_rows_total", "Rows that went to the sink.", labels, batch.rows_out)
        self._count("batch_seconds_total", "Time of all micro-batches.", labels, batch.seconds)
        self._set("last_batch_id", "Number of the last micro-batch.", labels, batch.batch_id)
        self._set("last_batch_seconds", "Time of the last micro-batch.", labels, batch.seconds)
        if batch.backlog is not None:
            self._set("backlog_rows", "Rows that wait in the source.", labels, batch.backlog)
        if batch.backlog_files is not None and batch.backlog_bytes is not None:
            self._set("backlog_files", "Files that wait in the source.", labels, batch.backlog_files)
            self._set("backlog_bytes", "Bytes of the files that wait in the source.", labels, batch.backlog_bytes)
        if batch.mirror is not None:
            for key, (metric, text) in _MIRROR.items():
                self._set(metric, text, labels, getattr(batch.mirror, key), kind=_kind(metric))
        for enrichment in batch.enrichments:
            counts = enrichment.as_dict()
            name = _escaped(str(counts.get("name", "")))
            labels = f'{{query="{_escaped(batch.query)}",name="{name}"}}'
            for key, (metric, text) in _COUNTERS.items():
                if isinstance(value := counts.get(key), int | float):
                    self._count(metric, text, labels, value)
            for key, (metric, text) in _GAUGES.items():
                if isinstance(value := counts.get(key), int | float):
                    self._set(metric, text, labels, value)
        self._write()

    def text(self) -> str:
        """Return the content of the file."""
        lines = []
        for name, metric in self._metrics.items():
            lines += [f"# HELP semistream_{name} {metric.text}", f"# TYPE semistream_{name} {metric.kind}"]
            lines += [f"semistream_{name}{labels} {value:.15g}" for labels, value in metric.values.items()]
        return "".join(f"{line}\n" for line in lines)

    def _count(self, name: str, text: str, labels: str, value: float) -> None:
        values = self._metrics.setdefault(name, _Metric("counter", text, {})).values
        values[labels] = values.get(labels, 0) + value

    def _set(self, name: str, text: str, labels: str, value: float, kind: str = "gauge") -> None:
        self._metrics.setdefault(name, _Metric(kind, text, {})).values[labels] = value

    def _write(self) -> None:
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}.tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(temporary, flags, 0o644), "w", encoding="utf-8") as file:
                file.write(self.text())
            temporary.replace(self._path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise


def _kind(metric: str) -> str:
    return "counter" if metric.endswith("_total") else "gauge"


def _finite(value: Scalar) -> Scalar:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _unwritable(key: str, path: Path, error: OSError) -> InvalidSettingError:
    why = (error.strerror or str(error)).lower()
    return InvalidSettingError(f"[statistics] {key} cannot be written to {path} ({why}): name another file.")
