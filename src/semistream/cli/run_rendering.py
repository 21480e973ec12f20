"""Shows a pipeline at work: a live table on a terminal, plain lines elsewhere, totals at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from semistream.cli.rendering import console, plain_table
from semistream.core.budget import format_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from semistream.pipeline.description import PipelineDescription
    from semistream.pipeline.running import RunTotals
    from semistream.pipeline.worker_memory import WorkerMemory
    from semistream.spark.batch_progress import BatchProgress

_SECONDS_BETWEEN_LINES = 4.0


class Screen(Protocol):
    """Is told each batch; called from a thread of Spark's."""

    def show(self, batch: BatchProgress) -> None:
        """Show a batch that has ended."""


def show_starting(description: PipelineDescription) -> None:
    """Say what is starting, because Spark takes seconds."""
    _say(f"Starting {description.name} on Spark at {description.spark.master}.")


def show_memory(needed: WorkerMemory, warning: str | None) -> None:
    """Say what the workers need in memory."""
    _say(f"Memory of workers: {needed}.")
    if warning is not None:
        _say(f"Warning: {warning}")


def show_checked(description: PipelineDescription, rows: DataFrame) -> None:
    """Print what a pipeline does and what its output looks like."""
    out = console()
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    join, source, sink = description.join, description.source, description.sink
    keys = [join.on] if isinstance(join.on, str) else list(join.on)
    trigger = description.trigger
    every = "as soon as there is data" if trigger.every.startswith("0 ") else f"every {trigger.every}"
    for name, value in (
        ("Pipeline", f"{description.name}, checkpoint {description.checkpoint}"),
        ("Source", " ".join(part for part in (source.format, source.path) if part)),
        ("Join", f"{join.how} on {', '.join(keys)} by {join.algorithm}, {format_bytes(join.memory_bytes)} a worker"),
        ("Steps", str(len(description.steps))),
        ("Sink", " ".join(part for part in (sink.format, sink.path) if part)),
        ("Trigger", "all that is there now" if trigger.available_now else every),
    ):
        facts.add_row(name, escape(value))
    out.print(facts)
    out.print()
    columns = plain_table()
    columns.add_column("Output column", style="cyan")
    columns.add_column("Type")
    for column in rows.schema.fields:
        columns.add_row(escape(column.name), escape(column.dataType.simpleString()))
    out.print(columns)
    out.print()
    out.print(f"{escape(str(description.file))} is sound; nothing was started.", soft_wrap=True)


def show_totals(totals: RunTotals) -> None:
    """Print what a run has done."""
    rate = totals.rows_in / totals.seconds if totals.seconds else 0.0
    batches = "1 batch" if totals.batches == 1 else f"{totals.batches:,} batches"
    counts = totals.counts
    console().print(
        f"{totals.pipeline}: {totals.rows_in:,} rows in and {totals.rows_out:,} out in {batches} and "
        f"{totals.seconds:.1f} seconds ({_rate(rate)} a second); {counts.get('cache_hits', 0):,} from the cache, "
        f"{counts.get('read_hits', 0):,} by reads, {counts.get('absent', 0):,} absent.",
        soft_wrap=True,
    )
    if totals.warning:
        _say(f"Warning: {totals.warning}")


@contextmanager
def screen(description: PipelineDescription) -> Iterator[Screen]:
    """Show batches while the block runs."""
    if not sys.stderr.isatty() or description.sink.format == "console":
        yield _Lines()
        return
    with Live(Text("Waiting for the first batch."), console=Console(stderr=True), auto_refresh=False) as live:
        yield _Table(live, description.name)


class _Lines:
    """One line every few seconds, the first batch always."""

    def __init__(self) -> None:
        self._next = 0.0

    def show(self, batch: BatchProgress) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _SECONDS_BETWEEN_LINES
            _say("; ".join(f"{name} {value}" for name, value in facts_of(batch)))


class _Table:
    """A table that is drawn anew after each batch."""

    def __init__(self, live: Live, name: str) -> None:
        self._live = live
        self._name = name

    def show(self, batch: BatchProgress) -> None:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(no_wrap=True)
        for name, value in facts_of(batch):
            grid.add_row(name, value)
        self._live.update(Group(Text(self._name, style="bold"), grid), refresh=True)


def facts_of(batch: BatchProgress) -> list[tuple[str, str]]:
    """Return what is worth knowing about a batch, by name."""
    facts = [
        ("batch", f"{batch.batch_id:,} in {batch.seconds:.2f} s"),
        ("in", f"{batch.rows_in:,} rows, {_rate(batch.rows_in_per_second)}/s"),
    ]
    if batch.rows_out is not None:
        facts.append(("out", f"{batch.rows_out:,} rows, {_rate(batch.rows_out_per_second)}/s"))
    for enrichment in batch.enrichments:
        facts += _enrichment_facts(enrichment.as_dict())
    if batch.backlog is not None:
        facts.append(("backlog", f"{batch.backlog:,} rows"))
    return facts


def _enrichment_facts(counts: Mapping[str, Any]) -> list[tuple[str, str]]:
    answered = max(1, counts.get("tuples_out") or 0)
    shares = ", ".join(
        f"{100 * (counts.get(key) or 0) / answered:.1f}% {name}"
        for key, name in (("cache_hits", "cache"), ("read_hits", "read"), ("absent", "absent"))
    )
    if counts.get("shadow_hits"):
        shares += f" ({100 * counts['shadow_hits'] / answered:.1f}% more from twice the cache)"
    reads = f"{counts.get('read_requests') or 0:,} of {format_bytes(counts.get('bytes_read') or 0)}"
    held, budget = counts.get("memory_bytes") or 0, counts.get("budget_bytes") or 0
    return [("hits", shares), ("reads", reads), ("memory", f"{format_bytes(held)} of {format_bytes(budget)}")]


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or not value else f"{value:.2g}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
