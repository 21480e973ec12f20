"""Says what a pipeline is about to do, and what it has done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from semistream.cli.rendering import console, plain_table, say, say_aside
from semistream.core.budget import format_bytes
from semistream.core.durations import format_seconds

if TYPE_CHECKING:
    from semistream.pipeline.description import DimensionDescription, PipelineDescription, SourceDescription
    from semistream.pipeline.planning import PlannedStep
    from semistream.pipeline.running import RunTotals
    from semistream.pipeline.worker_memory import WorkerMemory


def show_starting(description: PipelineDescription) -> None:
    """Say what is starting, because Spark takes seconds, and if rows may be written more than once."""
    from semistream.pipeline.sinks import Guarantee, sink_of

    say_aside(f"Starting {description.name} on Spark at {description.spark.master}.")
    sink = sink_of(description)
    if description.sink.topic is not None and sink.guarantee is Guarantee.AT_LEAST_ONCE:
        say_aside(f"Sink: {sink.told}.")


def show_memory(needed: WorkerMemory | None, warning: str | None) -> None:
    """Say what the workers need in memory, unless that is said elsewhere, and what is wrong with it."""
    if needed is not None:
        say_aside(f"Memory of workers: {needed}.")
    if warning is not None:
        say_aside(f"Warning: {warning}")


def show_checked(description: PipelineDescription, steps: Sequence[PlannedStep], needed: WorkerMemory) -> None:
    """Print what a pipeline does, what its rows look like after each step, and the memory that it takes."""
    from semistream.pipeline.sinks import sink_of

    out = console()
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    settings, trigger = description.enrich, description.trigger
    every = "as soon as there is data" if trigger.every.startswith("0 ") else f"every {trigger.every}"
    for name, value in (
        ("Pipeline", f"{description.name}, checkpoint {description.checkpoint}"),
        *(("Source", _source(source)) for source in description.sources),
        *(("Dimension", _dimension(dimension)) for dimension in description.dimensions),
        ("Join", f"by {settings.algorithm}, {format_bytes(settings.memory_bytes)} for all dimensions together"),
        *((("Room", _room(description)),) if description.rooms else ()),
        ("Sink", sink_of(description).told),
        ("Trigger", "all that is there now" if trigger.available_now else every),
    ):
        facts.add_row(name, escape(value))
    out.print(facts)
    out.print()
    columns = plain_table()
    columns.add_column("After", style="bold")
    columns.add_column("Columns", overflow="fold")
    before: set[str] = set()
    for step in steps:
        texts = [f"{field.name} {field.dataType.simpleString()}" for field in step.schema]
        # What a step has brought or changed stands out.
        shown = [escape(text) if text in before else f"[cyan]{escape(text)}[/]" for text in texts]
        columns.add_row(escape(step.name), ", ".join(shown))
        before = set(texts)
    out.print(columns)
    out.print()
    output = plain_table()
    output.add_column("Output column", style="cyan")
    output.add_column("Type")
    for column in steps[-1].schema.fields:
        output.add_row(escape(column.name), escape(column.dataType.simpleString()))
    out.print(output)
    out.print()
    say(f"Memory of workers: {needed}.", out)
    say(f"{escape(str(description.file))} is sound; nothing was started.", out)


def _source(source: SourceDescription) -> str:
    topics = (f"{', '.join(source.topic.topics)} at {source.topic.servers}",) if source.topic is not None else ()
    return " ".join((source.format, *((source.path,) if source.path else ()), *topics))


def _room(description: PipelineDescription) -> str:
    seconds = description.enrich.max_wait_seconds
    waits = "only parked rows wait" if seconds is None else f"rows wait for at most {format_seconds(seconds)}"
    return f"{description.enrich.room or f'{description.checkpoint}/room'}, {waits}"


def _dimension(dimension: DimensionDescription) -> str:
    from semistream.store.address import Address

    keys = [dimension.on] if isinstance(dimension.on, str) else list(dimension.on)
    return f"{Address.of(dimension.table).name}, {dimension.how} on {', '.join(keys)}"


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
