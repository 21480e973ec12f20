"""Shows a pipeline while it runs: a view that is drawn anew on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from semistream.core.budget import format_bytes

if TYPE_CHECKING:
    from semistream.pipeline.description import PipelineDescription
    from semistream.spark.batch_progress import BatchProgress

_SECONDS_BETWEEN_LINES = 4.0
_REDRAWS_PER_SECOND = 2


class Screen(Protocol):
    """Is told each batch; called from a thread of Spark's."""

    def show(self, batch: BatchProgress) -> None:
        """Show a batch that has ended."""


@contextmanager
def screen(description: PipelineDescription) -> Iterator[Screen]:
    """Show batches while the block runs."""
    if not sys.stderr.isatty() or description.sink.format == "console":
        yield Lines()
        return
    view = View(description.name)
    with Live(
        get_renderable=view.drawn, console=Console(stderr=True), refresh_per_second=_REDRAWS_PER_SECOND, transient=False
    ):
        yield view


class Lines:
    """One line every few seconds, the first batch always."""

    def __init__(self) -> None:
        self._next = 0.0

    def show(self, batch: BatchProgress) -> None:
        """Print the batch, unless another was printed a moment ago."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _SECONDS_BETWEEN_LINES
            print("; ".join(f"{name} {value}" for name, value in facts_of(batch)), file=sys.stderr, flush=True)


class View:
    """What a run has done so far and the last batch, with clocks that go on while nothing happens."""

    def __init__(self, name: str, now: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._now = now
        self._started = now()
        self._last: BatchProgress | None = None
        self._ended = 0.0
        self._batches = self._rows_in = self._rows_out = 0

    def show(self, batch: BatchProgress) -> None:
        """Count a batch that has ended; it is drawn at the next redraw."""
        self._batches += 1
        self._rows_in += batch.rows_in
        self._rows_out += batch.rows_out or 0
        self._ended = self._now()
        self._last = batch

    def drawn(self) -> RenderableType:
        """Return the view as of now."""
        now, batch = self._now(), self._last
        header = Text.assemble((self._name, "bold"), "  running for ", clock(now - self._started))
        if batch is None:
            return Group(header, Text("Waiting for the first batch."))
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        rate = self._rows_in / max(now - self._started, 1e-9)
        total = f"{self._rows_in:,} rows in, {self._rows_out:,} out, {_rate(rate)}/s"
        grid.add_row("total", f"{total}, {_batches(self._batches)}")
        grid.add_row("last batch", f"ended {clock(now - self._ended)} ago")
        for name, value in facts_of(batch):
            grid.add_row(name, value)
        return Group(header, grid)


def clock(seconds: float) -> str:
    """Return a time as hours, minutes and seconds."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def facts_of(batch: BatchProgress) -> list[tuple[str, str]]:
    """Return what is worth knowing about a batch, by name."""
    facts = [
        ("batch", f"{batch.batch_id:,} in {batch.seconds:.2f} s"),
        ("in", f"{batch.rows_in:,} rows, {_rate(batch.rows_in_per_second)}/s"),
    ]
    if batch.rows_out is not None:
        facts.append(("out", f"{batch.rows_out:,} rows, {_rate(batch.rows_out_per_second)}/s"))
    for enrichment in batch.enrichments:
        counts = enrichment.as_dict()
        if len(batch.enrichments) > 1:
            facts.append(("join", str(counts.get("name"))))
        facts += _enrichment_facts(counts)
    if batch.mirror is not None:
        failed = f", {batch.mirror.failures:,} refreshes failed" if batch.mirror.failures else ""
        facts.append(("mirror", f"version {batch.mirror.version}, {clock(batch.mirror.age_seconds)} old{failed}"))
    if batch.backlog is not None:
        facts.append(("backlog", f"{batch.backlog:,} rows"))
    if batch.backlog_files is not None:
        files = "1 file" if batch.backlog_files == 1 else f"{batch.backlog_files:,} files"
        facts.append(("backlog", f"{files}, {format_bytes(batch.backlog_bytes or 0)}"))
    return facts


def _enrichment_facts(counts: Mapping[str, Any]) -> list[tuple[str, str]]:
    answered = max(1, counts.get("tuples_out") or 0)
    shares = ", ".join(
        f"{100 * (counts.get(key) or 0) / answered:.1f}% {name}"
        for key, name in (("cache_hits", "cache"), ("read_hits", "read"), ("absent", "absent"))
    )
    facts = [("hits", shares)]
    if counts.get("shadow_hits"):
        facts.append(("twice the cache", f"{100 * counts['shadow_hits'] / answered:.1f}% more from the cache"))
    reads = f"{counts.get('read_requests') or 0:,}, {format_bytes(counts.get('bytes_read') or 0)} in all"
    held, budget = counts.get("memory_bytes") or 0, counts.get("budget_bytes") or 0
    facts += [("reads", reads), ("memory", f"{format_bytes(held)} of {format_bytes(budget)}")]
    if counts.get("version"):
        facts.append(("master", f"version {counts['version']}"))
    return facts


def _batches(count: int) -> str:
    return "1 batch" if count == 1 else f"{count:,} batches"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or not value else f"{value:.2g}"
