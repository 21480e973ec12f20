"""Shows the peers, and what was measured of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import typer
from rich.markup import escape

from semistream.cli.rendering import console, plain_table
from semistream_lab.peers.comparison_report import COLUMNS, cells
from semistream_lab.peers.contract import Peer
from semistream_lab.peers.peer_results import OURS, PeerResult, fastest_first


def show_peers(peers: Sequence[Peer]) -> None:
    """Print one line a peer."""
    table = plain_table()
    table.add_column("Peer", style="cyan", no_wrap=True)
    table.add_column("What it is")
    table.add_column("Here")
    for peer in peers:
        reason = peer.why_unavailable()
        table.add_row(peer.name, escape(peer.summary), "yes" if reason is None else f"[dim]{escape(reason)}[/]")
    console().print(table)


def show_left_out(left_out: Mapping[str, str]) -> None:
    """Print why peers do not take part, on standard error."""
    for name, reason in left_out.items():
        typer.echo(f"Left out: {name}. {reason}", err=True)


def show_results(results: Sequence[PeerResult], out: Path | None) -> None:
    """Print one line a peer, the fastest first."""
    table = plain_table()
    for number, column in enumerate(COLUMNS):
        table.add_column(column, justify="right" if number else "left", no_wrap=not number)
    for result in fastest_first(results):
        style = "bold" if result.peer == OURS else None
        table.add_row(*map(escape, cells(result, results)), style=style)
    shown = console()
    shown.print(table)
    if out is not None:
        shown.print(f"The page is {escape(str(out / 'peers.md'))}; figures and results are beside it.", soft_wrap=True)
