"""Shows results on standard output for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from semistream.core.budget import format_bytes
from semistream.core.durations import format_seconds
from semistream.engine.recipe import Recipe

if TYPE_CHECKING:
    from semistream.mirrors.refreshing import Refreshed

_NARROW = 100
_WIDTH_OF_A_FILE = 120


def console() -> Console:
    """Return the console on standard output; a pipe or file is wide enough for any table."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return Console(highlight=False)
    return Console(highlight=False, width=_WIDTH_OF_A_FILE)


def say(sentence: str, out: Console | None = None) -> None:
    """Print a sentence: on a terminal it breaks between words, elsewhere it is one line."""
    out = out or console()
    out.print(sentence, soft_wrap=not out.is_terminal)


def say_aside(sentence: str) -> None:
    """Print a sentence on standard error, where it is in nobody's way."""
    if sys.stderr.isatty():
        Console(stderr=True).print(sentence, markup=False, highlight=False)
    else:
        print(sentence, file=sys.stderr, flush=True)


def is_plain(out: Console) -> bool:
    """Say whether only ASCII can be shown."""
    return not out.encoding.lower().startswith("utf")


def plain_table(**options: Any) -> Table:
    """Return a table with a line under its head and nothing else around it."""
    return Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", **options)


def show_algorithms(family: Sequence[Recipe], default: str) -> None:
    """Print one line an algorithm."""
    out = console()
    mark = "!" if is_plain(out) else "⚠"
    table = plain_table()
    table.add_column("Algorithm", style="cyan", no_wrap=True)
    table.add_column("What sets it apart")
    for recipe in family:
        name = f"{recipe.name} [dim](default)[/]" if recipe.name == default else recipe.name
        table.add_row(name if recipe.bounded_wait else f"{name} [yellow]{mark}[/]", recipe.summary)
    out.print(table)
    if not all(recipe.bounded_wait for recipe in family):
        out.print(f"[yellow]{mark}[/] A tuple may wait without bound.")


def show_parameters(recipe: Recipe) -> None:
    """Print one line a parameter of an algorithm."""
    out = console()
    if not recipe.parameters:
        out.print(f"{recipe.name} has no parameters.")
        return
    table = plain_table()
    table.add_column("Parameter", style="cyan", no_wrap=True)
    table.add_column("Default", justify="right", no_wrap=True)
    table.add_column("May be", max_width=19 if console().width < _NARROW else None)
    table.add_column("What it means")
    for name, parameter in recipe.parameters.items():
        table.add_row(name, parameter.default_text, parameter.allowed, parameter.about)
    out.print(table)


def show_built(table: dict[str, Any]) -> None:
    """Print what was built."""
    say(
        f"Built version {table['version']} of {escape(table['path'])}: {_rows(table['rows'])} in "
        f"{table['pages']:,} pages, {format_bytes(table['bytes'])}."
    )


def show_merged(table: dict[str, Any], before: int) -> None:
    """Print what a merge has made."""
    if table["version"] == before:
        text = f"Nothing has changed: {escape(table['path'])} stays at version {before}."
    else:
        text = (
            f"Merged into version {table['version']} of {escape(table['path'])}: {_rows(table['rows'])} in "
            f"{table['pages']:,} pages; version {before} stays readable until it is vacuumed."
        )
    say(text)


def show_refreshed(path: str, done: Refreshed) -> None:
    """Print what a refresh has changed."""
    out = console()
    shown = escape(path)
    if not done.changed:
        say(f"Nothing has changed: {shown} stays at version {done.version}.", out)
        return
    rows = f"{_rows(done.rows_upserted)} inserted or replaced, {_rows(done.rows_deleted)} deleted"
    say(
        f"Refreshed {shown} to version {done.version}: {rows}, {format_bytes(done.bytes_written)} written in "
        f"{done.seconds:.1f} seconds.",
        out,
    )
    if done.columns_added:
        added = escape(", ".join(done.columns_added))
        say(f"The source has gained the columns {added}: all rows were written anew.", out)


def show_compacted(after: dict[str, Any], before: dict[str, Any]) -> None:
    """Print what a compaction has made."""
    path = escape(after["path"])
    if after["version"] == before["version"]:
        text = f"Nothing to do: version {after['version']} of {path} is in one file already."
    else:
        text = (
            f"Compacted {len(before['files']) - 1} files into one as version {after['version']} of {path}: "
            f"{format_bytes(before['bytes'])} before, {format_bytes(after['bytes'])} now."
        )
    say(text)


def show_reclustered(table: dict[str, Any], index_bytes_before: int, index_bytes: int) -> None:
    """Print where the hot rows are now, and what that costs."""
    by_use = table["by_use"]
    hot_pages = sum(by_use["pages"][:-1])
    say(
        f"Version {table['version']} of {escape(table['path'])} has its {_rows(table['rows'])} in the order of their "
        f"use ({escape(by_use['by'])}): {_keys(by_use['keys'])} on the first {hot_pages:,} of {table['pages']:,} "
        f"pages. The index takes {format_bytes(index_bytes)} of memory, {format_bytes(index_bytes_before)} before."
    )


def show_restored(table: dict[str, Any], restored: int) -> None:
    """Print what the table shows now."""
    path = escape(table["path"])
    if table["version"] == restored:
        text = f"Nothing to do: version {restored} of {path} is current."
    else:
        text = f"Version {table['version']} of {path} has the {_rows(table['rows'])} of version {restored} again."
    say(text)


def _keys(count: int) -> str:
    return "1 hot key" if count == 1 else f"{count:,} hot keys"


def _order(by_use: dict[str, Any]) -> str:
    pages = by_use["pages"]
    return f"by use ({by_use['by']}): {_keys(by_use['keys'])} on the first {sum(pages[:-1]):,} pages"


def show_info(about: dict[str, Any]) -> None:
    """Print a table's facts and columns."""
    out = console()
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    others = [str(version) for version in about["versions"] if version != about["version"]]
    for name, value in (
        ("Master table", about["path"]),
        ("Version", f"{about['version']} (others: {', '.join(others)})" if others else str(about["version"])),
        ("Created", about["created"]),
        ("Key", f"{', '.join(about['key'])} ({'unique' if about['unique'] else 'not unique'})"),
        ("Duplicates", about["on_duplicate"]),
        ("Rows", f"{about['rows']:,}"),
        ("Pages", f"{about['pages']:,} of about {about['page_bytes']:,} bytes"),
        *([("Order", _order(about["by_use"]))] if about.get("by_use") else []),
        *([("Mirror of", _described(about["mirror"]["source"]))] if about.get("mirror") else []),
        ("Size", f"{format_bytes(about['bytes'])} in {len(about['files'])} files"),
    ):
        facts.add_row(name, escape(value))
    out.print(facts)
    out.print()
    columns = plain_table()
    columns.add_column("Column", style="cyan")
    columns.add_column("Type")
    for name, kind in about["schema"].items():
        columns.add_row(escape(name), escape(kind))
    out.print(columns)
    if about["pins"]:
        out.print()
        pins = plain_table()
        for name in ("Pinned by query", "Batch", "Version", "Age"):
            pins.add_column(name, style="cyan" if name == "Pinned by query" else None)
        for pin in about["pins"]:
            age = format_seconds(pin["age_seconds"])
            pins.add_row(escape(pin["query"]), str(pin["batch"]), str(pin["version"]), age)
        out.print(pins)
    for path in about["damaged_pins"]:
        out.print()
        say(
            f"[red]The pin {escape(path)} is damaged[/], and vacuum refuses to work: restore the file, or remove it, "
            f"but then a replay of that batch sees the newest version.",
            out,
        )


def show_verified(path: str, checked: dict[str, int]) -> None:
    """Print what was checked."""
    say(
        f"Version {checked['version']} of {escape(path)} is sound: {checked['pages']:,} pages, "
        f"{_rows(checked['rows'])}, {format_bytes(checked['bytes'])} checked."
    )


def show_vacuumed(freed: dict[str, Any]) -> None:
    """Print what was removed."""
    out = console()
    removed = len(freed["versions"])
    versions = "1 old version" if removed == 1 else f"{removed} old versions"
    if removed or freed["bytes"]:
        say(f"Removed {versions} and {format_bytes(freed['bytes'])}.", out)
    else:
        say("No old version can be removed.", out)
    for query in freed["queries"]:
        say(f"Removed the pins of query {escape(query)}.", out)
    for version, reasons in freed["reasons"].items():
        say(f"Kept version {version}: {escape('; '.join(reasons))}.", out)


def _described(source: dict[str, Any]) -> str:
    """Return a source as it stands in a manifest, which holds no secrets."""
    rest = ", ".join(
        f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in source.items()
        if name != "kind"
    )
    return f"{source['kind']}: {rest}"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
