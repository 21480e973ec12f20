"""Draws the rows per second of all peers as bars, as PNG and SVG; the same results give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import matplotlib as mpl
from matplotlib import ticker
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from semistream_lab.peers.peer_results import OURS, OURS_WITHOUT_SPARK, PeerResult, fastest_first

_WIDTH, _HEIGHT_OF_ALL, _HEIGHT_OF_A_BAR = 7.2, 1.0, 0.34
_OURS, _ON_SPARK, _OUTSIDE = "#0060a0", "#9aa6b6", "#d98c00"
_NAMES = {
    "enrich": "semistream",
    "join": "semistream without Spark",
    "identity": "Spark, no join at all",
    "native": "Spark's stream-static join",
    "broadcast": "Spark's join, stream broadcast",
    "cached": "Spark's join, master cached",
    "sqlite": "lookups by hand, SQLite",
    "lmdb": "lookups by hand, LMDB",
    "postgresql": "lookups by hand, PostgreSQL",
    "redis": "lookups by hand, Redis",
    "duckdb": "DuckDB, master in memory",
    "polars": "Polars, master in memory",
    "flink-identity": "Flink, no join at all",
    "flink-jdbc-lookup": "Flink's JDBC lookup join",
}
"""What readers call the peers."""
_STYLE: dict[Any, Any] = {
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.5,
    "svg.hashsalt": "semistream",
    "svg.fonttype": "path",
    "savefig.dpi": 200,
}


def draw(results: Sequence[PeerResult]) -> dict[str, bytes]:
    """Return the files by their endings, the fastest peer at the top."""
    ordered = fastest_first(results)[::-1]
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, _HEIGHT_OF_ALL + _HEIGHT_OF_A_BAR * len(ordered)), layout="constrained")
        FigureCanvasAgg(figure)
        _bars(figure, ordered)
        return {"png": _saved(figure, "png", "Software"), "svg": _saved(figure, "svg", "Date")}


def _bars(figure: Figure, ordered: Sequence[PeerResult]) -> None:
    axes = figure.add_subplot()
    rates = [result.rows_per_second for result in ordered]
    # A bar on a logarithmic axis has no natural start: one decade below the slowest leaves room to tell bars apart.
    start = 10 ** (len(str(int(min(rates)))) - 2)
    names = [_NAMES.get(result.peer, result.peer) for result in ordered]
    bars = axes.barh(names, [rate - start for rate in rates], left=start, height=0.68)
    for bar, result in zip(bars, ordered, strict=True):
        bar.set_facecolor(
            _OURS if result.peer in (OURS, OURS_WITHOUT_SPARK) else _ON_SPARK if result.on_spark else _OUTSIDE
        )
        bar.set_edgecolor("white")
        bar.set_hatch("" if result.joins else "///")
        label = f" {result.rows_per_second:,.0f}"
        axes.text(result.rows_per_second, bar.get_y() + bar.get_height() / 2, label, va="center", fontsize=8.5)
    axes.set_xscale("log")
    axes.set_xlim(start, max(rates) * 3)
    axes.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    first = ordered[0]
    axes.set_xlabel(
        f"Rows per second, logarithmic scale\n({first.batch_rows:,} rows a batch, {first.master_rows:,} master rows)"
    )
    kinds = [(_OURS, "semistream"), (_ON_SPARK, "on Spark"), (_OUTSIDE, "without Spark")]
    handles = [mpl.patches.Patch(color=colour, label=name) for colour, name in kinds]
    handles.append(mpl.patches.Patch(facecolor=_ON_SPARK, edgecolor="white", hatch="///", label="joins nothing"))
    figure.legend(handles=handles, loc="outside upper left", ncols=4, frameon=False, fontsize=8.5)


def _saved(figure: Figure, kind: str, without: str) -> bytes:
    file = BytesIO()
    figure.savefig(file, format=kind, metadata={without: None})
    return file.getvalue()
