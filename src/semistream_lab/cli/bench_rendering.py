"""Shows what a bench has measured: what was compared, a table, and what it says."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from semistream.cli.rendering import console, is_plain, plain_table
from semistream.core.budget import format_bytes
from semistream_lab.cli.bench_plan import Accounting, BenchPlan, ClockKind, Ranks, StoreKind
from semistream_lab.cli.bench_runs import Result, Results

_NUMBERS_WIDTH = 56
_MEMORY_WIDTH = 8
_BAR_CELLS = 20
_FEWEST_BAR_CELLS = 8
_MAX_NAMES = 4
_ENOUGH_QUEUES = 10


def show(results: Results) -> None:
    """Print the results, in the order given or, for the whole family, the fastest first."""
    out = console()
    ordered = results.measured
    if results.plan.whole_family:
        ordered = sorted(ordered, key=lambda result: -result.measurement.service_rate)
    out.print()
    out.print(_title(results), style="bold")
    out.print(_facts(results))
    out.print()
    out.print(_table(ordered, out))
    out.print()
    for name, why in results.left_out.items():
        out.print(f"{name} was left out: {why}")
    conclusion = _conclusion(results.measured)
    if conclusion:
        out.print(conclusion, style="bold green")
    too_short = _too_short(results.plan, results.measured)
    if too_short:
        out.print(too_short, style="yellow")


def _title(results: Results) -> str:
    names = [result.algorithm for result in results.measured]
    if len(names) == 1:
        return f"How fast {names[0]} joins a stream with a master table"
    which = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) <= _MAX_NAMES else f"{len(names)} algorithms"
    return f"{which} compared: how fast each joins a stream with a master table"


def _facts(results: Results) -> Table:
    plan, table = results.plan, results.table
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column()
    size = format_bytes(table.rows * table.row_bytes)
    facts.add_row(
        "Master table",
        f"{table.rows:,} rows of {table.row_bytes:,} bytes in pages of {table.page_bytes:,} bytes, {size}, "
        + _place(plan),
    )
    facts.add_row("Stream", _stream(plan))
    counted = {
        Accounting.REAL: "counted as the bytes we allocate",
        Accounting.PAPERS: "counted as in the papers, 172 bytes a waiting tuple",
    }
    facts.add_row("Memory", f"{format_bytes(plan.memory_bytes)} for each join, {counted[plan.accounting]}")
    facts.add_row("Clock", _clock(plan))
    return facts


def _place(plan: BenchPlan) -> str:
    if plan.master is not None:
        place = f"in {plan.master}"
    else:
        place = "in memory" if plan.store is StoreKind.MEMORY else "in a paged file"
    return f"{place}, read past the page cache" if plan.direct else place


def _stream(plan: BenchPlan) -> str:
    length = f"{plan.tuples:,} tuples" if plan.tuples is not None else f"{plan.seconds:g} seconds"
    where = {Ranks.SORTED: "frequent keys side by side", Ranks.SHUFFLED: "frequent keys spread over the table"}
    parts = [f"{length} after a warm-up", f"Zipf exponent {plan.zipf:g}", where[plan.ranks]]
    if plan.absent:
        parts.append(f"{plan.absent:.1%} of the keys absent")
    parts.append("Arrow batches with a payload" if plan.payload else "bare keys")
    return ", ".join([*parts, f"seed {plan.seed}"])


def _clock(plan: BenchPlan) -> str:
    if plan.clock is ClockKind.MODEL:
        return f"model: the costs of the profile {plan.profile!r} are charged, so every machine gives these numbers"
    slowed = f", reads slowed down as in the profile {plan.profile!r}" if plan.profile else ""
    return f"wall: the time that this machine needs{slowed}"


def _table(results: Sequence[Result], out: Console) -> Table:
    best = max((result.measurement.service_rate for result in results), default=0.0)
    # What is left beside the numbers goes to the memory, which is the same in most runs, and then to bars.
    room = out.width - max(len(result.algorithm) for result in results) - _NUMBERS_WIDTH
    bar_cells = min(_BAR_CELLS, room - _MEMORY_WIDTH)
    heads = ["Tuples/s", "Cache\nhits %", "Read\nrequests", "Read\nMB", "Mean\nwait s", "Longest\nwait s"]
    table = plain_table(padding=(0, 1, 0, 0))
    table.add_column("Algorithm", style="cyan", no_wrap=True)
    for head in [*heads, "Memory\nMB"] if room >= _MEMORY_WIDTH else heads:
        table.add_column(head, justify="right", no_wrap=True)
    if bar_cells >= _FEWEST_BAR_CELLS:
        table.add_column("", style="green", no_wrap=True)
    for result in results:
        measured, stats = result.measurement, result.measurement.stats
        cells = [
            result.algorithm,
            f"[bold]{measured.service_rate:,.0f}[/]",
            f"{100 * stats.cache_hits / max(1, stats.tuples_out):.1f}",
            f"{stats.read_requests:,}",
            f"{stats.bytes_read / 1e6:,.0f}",
            _seconds(stats.mean_wait_seconds),
            _seconds(stats.max_wait_seconds),
            f"{measured.peak_memory_bytes / 1e6:.1f}",
            bar(measured.service_rate / best if best else 0.0, bar_cells, plain=is_plain(out)),
        ]
        table.add_row(*cells[: len(table.columns)])
    return table


def _seconds(value: float) -> str:
    return f"{value:.2f}" if value >= 1 or not value else f"{value:.3g}" if value >= 0.001 else f"{value:.1e}"


def bar(share: float, cells: int, *, plain: bool) -> str:
    eighths = round(max(0.0, min(1.0, share)) * cells * 8)
    if plain:
        return "#" * max(1, eighths // 8)
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8].strip() if eighths else "▏")


def _conclusion(results: Sequence[Result]) -> str:
    """Return what the fastest algorithm gains; the oracle knows everything and takes no part."""
    rivals = sorted(
        (result for result in results if result.algorithm != "oracle"),
        key=lambda result: result.measurement.service_rate,
    )
    if len(rivals) < 2 or not rivals[0].measurement.service_rate:
        return ""
    slowest, fastest = rivals[0], rivals[-1]
    times = fastest.measurement.service_rate / slowest.measurement.service_rate
    how_many = f"{times:,.0f}" if times >= 100 else f"{times:.1f}" if times >= 1.05 else f"{times:.2f}"
    return f"{fastest.algorithm} joins {how_many} times as many tuples per second as {slowest.algorithm}."


def _too_short(plan: BenchPlan, results: Sequence[Result]) -> str:
    short = [result for result in results if not result.measurement.is_long_enough]
    if not short:
        return ""
    names = ", ".join(result.algorithm for result in short)
    if len(short) > _MAX_NAMES:
        names = f"{len(short)} of {len(results)} algorithms"
    if plan.tuples is not None:
        enough = max(result.measurement.stats.tuples_out * _needed_times(result) for result in short)
        advice = f"--tuples {_rounded_up(enough):.0f}"
    else:
        advice = f"--seconds {_rounded_up(max(r.measurement.seconds * _needed_times(r) for r in short)):g}"
    return (
        f"Short run of {names}: fewer than {_ENOUGH_QUEUES} times what can wait has passed the disk phase, so that "
        f"the rates are not steady yet; {advice} is long enough."
    )


def _needed_times(result: Result) -> float:
    stats = result.measurement.stats
    return _ENOUGH_QUEUES * result.measurement.waiting_slots / max(1, stats.read_hits + stats.absent) * 1.05


def _rounded_up(number: float) -> float:
    """Return the next number with two leading digits."""
    step = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.ceil(number / step) * step
