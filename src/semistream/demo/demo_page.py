"""The page about a demo: one HTML file that needs neither a network nor scripts."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from itertools import pairwise
from string import Template

from semistream.core.budget import format_bytes
from semistream.demo.charts import Chart, Series
from semistream.demo.demo_page_style import DEMO_PAGE_STYLE
from semistream.demo.proof import Proof
from semistream.demo.summary import DemoSummary, seconds_between, size_beside
from semistream.spark.batch_progress import BatchProgress

_PAGE = Template("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>semistream demo</title>
<style>
$style</style>
</head>
<body>
<main>
<header>
<h1>semistream demo</h1>
<p class="lead">$flow</p>
</header>
<p class="proof $verdict">$proof</p>
<section class="tiles">
$tiles
</section>
<section class="charts">
$charts
</section>
<section class="rest">
<div>
<h2>Summary</h2>
<table>
$facts
</table>
</div>
<div>
<h2>Beside this page</h2>
<ul>
<li><a href="warehouse/">warehouse/</a> has the enriched sales as Parquet files.</li>
<li><a href="products/">products/</a> is the master table in pages, built from
<a href="products.parquet">products.parquet</a>.</li>
<li><a href="pipeline.toml">pipeline.toml</a> is what ran;
<code>semistream run pipeline.toml</code> goes on with it.</li>
<li><a href="batches.jsonl">batches.jsonl</a> has the counts of every micro-batch.</li>
</ul>
<h2 class="next">To try next</h2>
<ul>
$next
</ul>
</div>
</section>
<footer>$footer</footer>
</main>
</body>
</html>
""")


TRY_NEXT = (
    ("Less memory", "semistream demo --memory 16MB"),
    ("Another algorithm", "semistream demo --algorithm hybridjoin"),
    ("Three algorithms compared", "semistream lab bench --algorithm meshjoin,hybridjoin,cachejoin --clock model"),
)
"""What a demo makes curious about, and the command that answers it."""


def page(summary: DemoSummary, proof: Proof, batches: Sequence[BatchProgress]) -> str:
    """Return the text of the page."""
    return _PAGE.substitute(
        style=DEMO_PAGE_STYLE,
        flow=escape(flow_of(summary)),
        verdict="holds" if proof.holds else "fails",
        proof=f"<b>{'✓' if proof.holds else '✗'}</b> <span>{escape(proof.sentence)}</span>",
        tiles="\n".join(
            f'<div class="tile"><span class="label">{escape(label)}</span><span class="number">{escape(number)}</span>'
            f'<span class="about">{escape(about)}</span></div>'
            for label, number, about in _tiles(summary)
        ),
        charts="\n".join(
            f"<figure><figcaption><h2>{escape(chart.title)}</h2><p>{escape(chart.note)}</p>{chart.legend()}"
            f"</figcaption>{chart.svg()}</figure>"
            for chart in charts_of(batches)
        ),
        facts="\n".join(
            f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in summary.facts()
        ),
        next="\n".join(f"<li>{escape(what)}: <code>{escape(how)}</code></li>" for what, how in TRY_NEXT),
        footer=escape(_footer()),
    )


def flow_of(summary: DemoSummary) -> str:
    """Return in one sentence what the demo does."""
    return (
        f"Sales arrive in bursts, about {summary.rate:,} a second; Spark workers, whose joins may use "
        f"{format_bytes(summary.budget_bytes)} in each, give every sale the surrogate key, supplier and price of its "
        f"product from a master table of {summary.products:,} rows, and write it with its total to a Parquet "
        f"warehouse. The table has {size_beside(summary.master_bytes, summary.budget_bytes)}."
    )


def charts_of(batches: Sequence[BatchProgress]) -> list[Chart]:
    """Return what happened over time; a batch stands at its end, counted from the start of the first."""
    starts = [seconds_between(batches[0], batch) for batch in batches]
    ends = [start + batch.seconds for start, batch in zip(starts, batches, strict=True)]
    leaving = [later - earlier for earlier, later in pairwise([0.0, *ends])]
    counts = [
        {
            name: sum(getattr(one, name) for one in batch.enrichments)
            for name in ("tuples_in", "cache_hits", "read_hits", "absent", "bytes_read")
        }
        for batch in batches
    ]
    largest = [
        {
            name: max((getattr(one, name) for one in batch.enrichments), default=0)
            for name in ("memory_bytes", "budget_bytes", "resident_bytes")
        }
        for batch in batches
    ]

    def shares(name: str) -> list[float]:
        return [100 * count[name] / max(1, count["tuples_in"]) for count in counts]

    def sizes(name: str) -> list[float]:
        return [float(one[name]) for one in largest]

    hits = [Series("from the cache", shares("cache_hits"), "first", "area")]
    hits.append(Series("by reading pages", shares("read_hits"), "second", "area"))
    if any(count["absent"] for count in counts):
        hits.append(Series("not in the master table", shares("absent"), "third", "area"))
    rates = [
        Series("in", _arrivals(batches, starts), "second"),
        Series(
            "out", [_rate(batch.rows_out or 0, time) for batch, time in zip(batches, leaving, strict=True)], "first"
        ),
    ]
    memory = [
        Series("held by the joins", sizes("memory_bytes"), "first", "area"),
        Series("budget", sizes("budget_bytes"), "third", "dashes"),
        Series("whole worker process", sizes("resident_bytes"), "muted"),
    ]
    reads = [Series("read", [float(count["bytes_read"]) for count in counts], "first", "bars")]
    return [
        Chart("Sales per second", "Arrived and written since the batch before.", ends, rates, _count),
        Chart(
            "Where the answers came from", "Share of the sales of a batch.", ends, hits, _percent, stacked=True, top=100
        ),
        Chart("Memory", "Of the largest worker process, against its budget.", ends, memory, _size),
        Chart("Reads", "Bytes of master pages read in a batch, by all workers.", ends, reads, _size),
    ]


def _arrivals(batches: Sequence[BatchProgress], starts: Sequence[float]) -> list[float]:
    """Return how many sales a second arrived before each batch: those it took, and those it left to the next ones.

    Nobody knows when the stream began, so that the first batch is shown with the rate of the second.
    """
    rates = [
        _rate(batch.rows_in + (batch.backlog or 0) - (before.backlog or 0), start - earlier)
        for (before, batch), (earlier, start) in zip(pairwise(batches), pairwise(starts), strict=True)
    ]
    return [rates[0] if rates else 0.0, *rates]


def _rate(rows: int, seconds: float) -> float:
    return max(0, rows) / seconds if seconds > 0 else 0.0


def _tiles(summary: DemoSummary) -> list[tuple[str, str, str]]:
    return [
        ("Sales enriched", f"{summary.rows_out:,}", f"{summary.rows_per_second:,.0f} a second"),
        (
            "Median micro-batch",
            f"{summary.median_batch_seconds:.2f} s",
            f"99% within {summary.p99_batch_seconds:.2f} s, {summary.batches:,} batches",
        ),
        ("From the cache", f"{100 * summary.hit_rate:.1f}%", f"with {summary.cached_rows:,} rows in it"),
        (
            "Memory of the joins",
            format_bytes(summary.memory_bytes),
            f"of {format_bytes(summary.budget_bytes)}; table {format_bytes(summary.master_bytes)}",
        ),
    ]


def _footer() -> str:
    now = datetime.now(UTC)
    cores = len(os.sched_getaffinity(0))
    return (
        f"Made on {now:%Y-%m-%d at %H:%M} UTC with semistream {version('semistream')}, Spark {version('pyspark')} and "
        f"Python {platform.python_version()} on {cores} {'core' if cores == 1 else 'cores'}."
    )


def _count(value: float) -> str:
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{value:.3g}%"


def _size(value: float) -> str:
    return format_bytes(value).replace(".0 ", " ") if value else "0"
