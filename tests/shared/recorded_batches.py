"""Micro-batches as a run would tell them, for tests that need no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import numpy as np

from semistream.spark.batch_progress import BatchProgress
from semistream.spark.statistics import CACHE_SIZES, NOT_FLAT, BatchStatistics

START = 1_790_000_000.0
PARTS = {
    "cache": 24_100_000,
    "input": 15_600_000,
    "found rows": 10_000_000,
    "output": 8_000_000,
    "disk buffer": 3_800_000,
    "index": 2_500_000,
}


def counts(batch_id: int = 0, **changes: Any) -> BatchStatistics:
    """Return the counts of an enrichment; all that is not given is 0."""
    default: dict[str, Any] = {"name": "sales", "query_id": "q", "batch_id": batch_id, "tasks": 2, "processes": 2}
    zeros = {field.name: 0 for field in fields(BatchStatistics) if field.name not in NOT_FLAT}
    return BatchStatistics(**{**zeros, **default, **changes})


def batch(batch_id: int = 0, *, began: float = START, **changes: Any) -> BatchProgress:
    """Return a batch that began at a moment."""
    default: dict[str, Any] = {
        "query": "sales",
        "query_id": "q",
        "batch_id": batch_id,
        "timestamp": datetime.fromtimestamp(began, UTC).isoformat().replace("+00:00", "Z"),
        "rows_in": 1_000,
        "rows_out": 1_000,
        "seconds": 0.5,
        "add_batch_seconds": 0.3,
        "backlog": None,
        "enrichments": (counts(batch_id),),
    }
    return BatchProgress(**{**default, **changes})


def run_of(
    batch_count: int, *, start: float = START, growth: float = 0.0, keys: int = 0, seed: int = 1
) -> Iterator[BatchProgress]:
    """Yield the batches of a run, one a second, whose backlog grows by so many rows a second."""
    random = np.random.default_rng(seed)
    backlog = 5_000.0
    for number in range(batch_count):
        rows = int(9_000 + 2_500 * np.sin(number / 9) + random.integers(0, 1_200))
        warm = 0.42 + 0.35 * (1 - np.exp(-number / 25))
        hits, absent = int(rows * warm), int(0.012 * rows)
        backlog = max(0.0, backlog + growth + float(random.normal(0, 150)))
        reads = 0.11 + 0.35 * (1 - warm) + random.random() * 0.04
        python = 0.09 + random.random() * 0.02
        seconds = 0.26 + reads + python
        by_size = [int(hits * share**0.35) for share in CACHE_SIZES]
        one = counts(
            number,
            version=3 + number // 40,
            tuples_in=rows,
            tuples_out=rows,
            rows_out=rows,
            cache_hits=hits,
            read_hits=rows - hits - absent,
            shadow_hits=int(0.05 * rows),
            absent=absent,
            page_reads=rows // 4,
            read_requests=rows // 5,
            bytes_read=rows * 900,
            memory_bytes=64_000_000,
            budget_bytes=64_000_000,
            resident_bytes=301_000_000,
            cache_evictions=6_000,
            cached_rows=min(180_000, 3_000 * (number + 1)),
            seconds=reads + python,
            task_seconds=1.8 * (reads + python),
            read_seconds=1.8 * reads,
            input_seconds=0.05,
            output_seconds=0.02,
            latency_p50_seconds=0.6 * (reads + python),
            latency_p99_seconds=0.9 * (reads + python),
            max_latency_seconds=reads + python,
            memory_parts=PARTS,
            hits_by_size=by_size if number % 5 == 4 else (),
            hot_keys=[(f"sku-{place:04}", 900 // (place + 1)) for place in range(keys)],
            unmatched_keys=[(f"lost-{place}", 40 // (place + 1)) for place in range(keys)],
        )
        yield batch(
            number,
            began=start + number,
            rows_in=rows,
            rows_out=rows,
            seconds=seconds,
            add_batch_seconds=seconds - 0.13,
            planning_seconds=0.07,
            commit_seconds=0.04,
            backlog=round(backlog),
            enrichments=(one,),
        )
