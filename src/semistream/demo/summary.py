"""What a demo has shown, in numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from semistream.core.budget import format_bytes
from semistream.demo.demo_run import DemoSettings
from semistream.demo.proof import Proof
from semistream.spark.batch_progress import BatchProgress, Scalar


@dataclass(frozen=True)
class DemoSummary:
    """The numbers of a demo over all its batches; of memory the largest that any worker process had."""

    algorithm: str
    products: int
    master_bytes: int
    rate: int
    rows_in: int
    rows_out: int
    seconds: float
    """From the start of the first batch to the end of the last."""
    busy_seconds: float
    """The batches alone."""
    batches: int
    median_batch_seconds: float
    p99_batch_seconds: float
    cache_hits: int
    read_hits: int
    absent: int
    page_reads: int
    read_requests: int
    bytes_read: int
    cached_rows: int
    budget_bytes: int
    memory_bytes: int
    worker_bytes: int

    @classmethod
    def of(cls, settings: DemoSettings, master_bytes: int, batches: Sequence[BatchProgress]) -> DemoSummary:
        """Return the summary of batches, of which there must be one at least."""
        counts = [one for batch in batches for one in batch.enrichments]
        durations = sorted(batch.seconds for batch in batches)
        last = batches[-1]
        return cls(
            algorithm=settings.algorithm,
            products=settings.products,
            master_bytes=master_bytes,
            rate=settings.rate,
            rows_in=sum(batch.rows_in for batch in batches),
            rows_out=sum(batch.rows_out or 0 for batch in batches),
            seconds=seconds_between(batches[0], last) + last.seconds,
            busy_seconds=sum(durations),
            batches=len(batches),
            median_batch_seconds=statistics.median(durations),
            p99_batch_seconds=durations[math.ceil(0.99 * len(durations)) - 1],
            cache_hits=sum(one.cache_hits for one in counts),
            read_hits=sum(one.read_hits for one in counts),
            absent=sum(one.absent for one in counts),
            page_reads=sum(one.page_reads for one in counts),
            read_requests=sum(one.read_requests for one in counts),
            bytes_read=sum(one.bytes_read for one in counts),
            cached_rows=max((one.cached_rows for one in counts), default=0),
            budget_bytes=max((one.budget_bytes for one in counts), default=0),
            memory_bytes=max((one.memory_bytes for one in counts), default=0),
            worker_bytes=max((one.resident_bytes for one in counts), default=0),
        )

    @property
    def rows_per_second(self) -> float:
        """Rows in by the whole time, waiting for the next batch included."""
        return self.rows_in / self.seconds if self.seconds else 0.0

    @property
    def busy_rows_per_second(self) -> float:
        """Rows in by the time of the batches alone."""
        return self.rows_in / self.busy_seconds if self.busy_seconds else 0.0

    @property
    def hit_rate(self) -> float:
        """The share of sales that were answered from the cache."""
        return self.cache_hits / self.rows_in if self.rows_in else 0.0

    def row(self, proof: Proof) -> dict[str, Scalar]:
        """Return a flat object with the result of the proof."""
        return {
            **asdict(self),
            "rows_per_second": self.rows_per_second,
            "busy_rows_per_second": self.busy_rows_per_second,
            "hit_rate": self.hit_rate,
            "proved": proof.holds,
            "expected_rows": proof.expected_rows,
            "found_rows": proof.found_rows,
            "missing_rows": proof.missing_rows,
            "unexpected_rows": proof.unexpected_rows,
            "problem": proof.problem,
        }

    def facts(self) -> list[tuple[str, str]]:
        """Return the numbers for people, by name."""
        seconds = f"{self.seconds:.1f} s, of which {self.busy_seconds:.1f} s at work"
        return [
            ("Sales in", f"{self.rows_in:,}"),
            ("Rows out", f"{self.rows_out:,}"),
            ("Time", seconds),
            ("Sales per second", f"{self.rows_per_second:,.0f} as they came, {self.busy_rows_per_second:,.0f} at work"),
            ("Micro-batches", f"{self.batches:,}"),
            ("Time of a batch", f"median {self.median_batch_seconds:.2f} s, 99% within {self.p99_batch_seconds:.2f} s"),
            (
                "From the cache",
                f"{100 * self.hit_rate:.1f}% of the sales, at most {self.cached_rows:,} rows in a worker",
            ),
            ("Pages read", f"{self.page_reads:,} in {self.read_requests:,} reads, {format_bytes(self.bytes_read)}"),
            ("Memory of the joins", f"{format_bytes(self.memory_bytes)} of {format_bytes(self.budget_bytes)}"),
            ("Worker process", f"at most {format_bytes(self.worker_bytes)}, with Python and its libraries"),
            ("Master table", f"{self.products:,} rows, {size_beside(self.master_bytes, self.budget_bytes)}"),
            ("Algorithm", self.algorithm),
        ]


def size_beside(master_bytes: int, budget_bytes: int) -> str:
    """Return the size of a master table, and how many times the memory of the joins in a worker that is."""
    times = master_bytes / max(1, budget_bytes)
    shown = f"{times:,.0f}" if times >= 10 else f"{times:.1f}"
    return f"{format_bytes(master_bytes)}: {shown} times the memory of the joins in a worker"


def seconds_between(earlier: BatchProgress, later: BatchProgress) -> float:
    """Return the time from the start of one batch to the start of another."""
    start, end = (datetime.fromisoformat(batch.timestamp) for batch in (earlier, later))
    return (end - start).total_seconds()
