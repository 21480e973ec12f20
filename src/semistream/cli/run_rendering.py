"""Says what a pipeline is about to do, and what it has done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from semistream.cli.rendering import console, plain_table, say, say_aside
from semistream.core.budget import format_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from semistream.pipeline.description import PipelineDescription
    from semistream.pipeline.running import RunTotals
    from semistream.pipeline.worker_memory import WorkerMemory


def show_starting(description: PipelineDescription) -> None:
    """Say what is starting, because Spark takes seconds."""
    say_aside(f"Starting {description.name} on Spark at {description.spark.master}.")


def show_memory(needed: WorkerMemory, warning: str | None) -> None:
    """Say what the workers need in memory."""
    say_aside(f"Memory of workers: {needed}.")
    if warning is not None:
        say_aside(f"Warning: {warning}")


def show_checked(description: PipelineDescription, rows: DataFrame) -> None:
    """Print what a pipeline does and what its output looks like."""
    out = console()
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    settings, dimension = description.enrich, description.dimension
    source, sink = description.source, description.sink
    keys = [dimension.on] if isinstance(dimension.on, str) else list(dimension.on)
    join = (
        f"{dimension.how} on {', '.join(keys)} by {settings.algorithm}, {format_bytes(settings.memory_bytes)} a worker"
    )
    trigger = description.trigger
    every = "as soon as there is data" if trigger.every.startswith("0 ") else f"every {trigger.every}"
    for name, value in (
        ("Pipeline", f"{description.name}, checkpoint {description.checkpoint}"),
        ("Source", " ".join(part for part in (source.format, source.path) if part)),
        ("Join", join),
        ("Steps", f"{len(description.prepare)} before the join, {len(description.transform)} after it"),
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
    say(f"{escape(str(description.file))} is sound; nothing was started.", out)


def show_totals(totals: RunTotals) -> None:
    """Print what a run has done."""
    rate = totals.rows_in / totals.seconds if totals.seconds else 0.0
    batches = "1 batch" if totals.batches == 1 else f"{totals.batches:,} batches"
    counts = totals.counts
    say(
        f"{totals.pipeline}: {totals.rows_in:,} rows in and {totals.rows_out:,} out in {batches} and "
        f"{totals.seconds:.1f} seconds ({_rate(rate)} a second); {counts.get('cache_hits', 0):,} from the cache, "
        f"{counts.get('read_hits', 0):,} by reads, {counts.get('absent', 0):,} absent.",
    )
    if totals.warning:
        say_aside(f"Warning: {totals.warning}")


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or not value else f"{value:.2g}"
