"""Shows the demo: what is being done, the numbers at the end, and where everything is."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from semistream.cli.rendering import console, is_plain, say, say_aside
from semistream.core.budget import format_bytes, parse_bytes

if TYPE_CHECKING:
    from semistream.demo import DemoFolder, DemoSettings, DemoSummary, Proof


def show_promise(settings: DemoSettings) -> None:
    """Say what will be shown and proved."""
    memory = format_bytes(parse_bytes(settings.memory))
    for line in (
        f"{settings.products:,} products are a table far larger than the {memory} that the joins of a worker get.",
        f"About {settings.rate:,} sales a second meet them there, for {settings.seconds:g} s.",
        "The proof at the end: every sale is in the warehouse once, with what Spark's own join gives it.",
    ):
        say_aside(line)


def show_size(master_bytes: int, settings: DemoSettings) -> None:
    """Say how large the master table has become."""
    from semistream.demo import size_beside

    say_aside(f"The master table has {size_beside(master_bytes, parse_bytes(settings.memory))}.")


def show_preparing(settings: DemoSettings) -> None:
    """Say that the master table is being built."""
    say_aside(f"Building a product master of {settings.products:,} rows.")


def show_warming() -> None:
    """Say that the workers are starting, because that takes seconds."""
    say_aside("Starting the Python workers.")


def show_streaming(settings: DemoSettings) -> None:
    """Say that sales are streaming."""
    say_aside(f"Streaming about {settings.rate:,} sales a second for {settings.seconds:g} s.")


def show_proving() -> None:
    """Say that the result is being compared."""
    say_aside("Comparing every row of the warehouse with Spark's own join.")


def show_demo(summary: DemoSummary, proof: Proof, folder: DemoFolder) -> None:
    """Print the numbers, the proof in one line, where everything is, and what to try next."""
    from semistream.demo.demo_page import TRY_NEXT

    out = console()
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in summary.facts():
        facts.add_row(name, escape(value))
    out.print()
    out.print(facts)
    out.print()
    mark, colour = ("+" if is_plain(out) else "✓", "green") if proof.holds else ("!" if is_plain(out) else "✗", "red")
    say(f"[{colour}]{mark}[/] {escape(proof.sentence)}", out)
    out.print()
    places = Table.grid(padding=(0, 2))
    places.add_column(style="dim", no_wrap=True)
    places.add_column(overflow="fold")
    for name, value in (
        ("Page", _short(folder.page)),
        ("Warehouse", _short(folder.warehouse)),
        ("Master table", _short(folder.master)),
        ("Continue the stream", f"semistream run {_quoted(folder.pipeline)}"),
        ("About the master table", f"semistream master info {_quoted(folder.master)}"),
        *TRY_NEXT,
    ):
        places.add_row(name, escape(value))
    out.print(places)


def _short(path: Path) -> str:
    """Return the path as seen from the working directory if it lies in it."""
    here = Path(os.getcwd())  # noqa: PTH109 - as the folder was made absolute
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _quoted(path: Path) -> str:
    """Return the path as a shell takes it."""
    return shlex.quote(_short(path))
