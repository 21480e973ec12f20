"""Draws the grid as maps, and tells what it shows, for the lab's page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from semistream_lab.experiments.demand_grid import GROUP, Cell, Summary, summary_of
from semistream_lab.experiments.figure_style import FIGURE_STYLE
from semistream_lab.experiments.figures import Picture, saved

_COLOURS = "RdBu"
_LEAST, _MOST = 0.5, 2.0
_LOST_COLOUR = "#b00020"


def draw_grid(cells: Sequence[Cell]) -> Picture:
    """Draw a map for each profile: tables and memories downwards, exponents across, in both orders of ranks."""
    profiles = list(dict.fromkeys(cell.profile for cell in cells))
    with mpl.rc_context(FIGURE_STYLE):
        figure = Figure(figsize=(8.4, 0.7 + 3.1 * len(profiles)), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, profile in zip(figure.subplots(len(profiles), 1, squeeze=False)[:, 0], profiles, strict=True):
            _map(axes, profile, [cell for cell in cells if cell.profile == profile])
        return saved(figure)


def _map(axes: Axes, profile: str, cells: Sequence[Cell]) -> None:
    tables = sorted({(cell.master_rows, cell.memory_bytes) for cell in cells})
    columns = sorted({(cell.ranks, cell.exponent) for cell in cells}, key=lambda one: (one[0] == "shuffled", one[1]))
    values = np.full((len(tables), len(columns)), np.nan)
    for cell in cells:
        row = tables.index((cell.master_rows, cell.memory_bytes))
        column = columns.index((cell.ranks, cell.exponent))
        values[row, column] = cell.ratio
        axes.text(
            column + 0.5,
            row + 0.5,
            f"{cell.ratio:.2f}",
            ha="center",
            va="center",
            fontsize=8,
            fontweight="bold" if cell.is_lost else "normal",
            color=_LOST_COLOUR if cell.is_lost else "white" if cell.ratio > 1.6 else "black",
        )
        if cell.is_lost:
            axes.add_patch(Rectangle((column, row), 1, 1, fill=False, edgecolor=_LOST_COLOUR, linewidth=1.4, zorder=3))
    norm = TwoSlopeNorm(1.0, _LEAST, _MOST)
    axes.pcolormesh(np.ma.masked_invalid(values), cmap=_COLOURS, norm=norm, edgecolors="white", linewidth=0.5)
    axes.set_xticks(np.arange(len(columns)) + 0.5, [f"{exponent:g}" for _, exponent in columns])
    axes.set_yticks(np.arange(len(tables)) + 0.5, [f"{rows / 1e6:g}M in {size / 1e6:g} MB" for rows, size in tables])
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    split = sum(1 for ranks, _ in columns if ranks != "shuffled")
    if 0 < split < len(columns):
        axes.axvline(split, color="black", linewidth=1.2)
    axes.set_xlabel("Zipf exponent, frequent keys side by side (left) and spread over the table (right)")
    axes.set_title(
        f"Costs of {profile}: service rate of DEMANDJOIN over that of the best other", fontsize=10, loc="left"
    )


def grid_card(cells: Sequence[Cell], svg: bytes) -> str:
    """Return the part of the page that tells about the grid."""
    by_profile = {profile: [cell for cell in cells if cell.profile == profile] for profile in _profiles(cells)}
    rows = "\n".join(_summary_row(profile, summary_of(cells_of_one)) for profile, cells_of_one in by_profile.items())
    lost = [cell for cell in cells if cell.is_lost]
    data = b64encode(svg).decode()
    return (
        f'<section class="card" id="{GROUP}"><h3>DEMANDJOIN compared with the family'
        f'<span class="id">{GROUP}</span></h3>'
        f'<p class="says">{escape(_ABOUT)}</p>'
        "<table><thead><tr><th>Costs</th><th>Cells</th><th>Lost</th><th>Beside the best of each cell</th>"
        "<th>Beside the best single other, tuned</th><th>Beside the best single other as in its paper</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
        f'<div class="figures wide"><figure><img alt="DEMANDJOIN over the best other, cell by cell" '
        f'src="data:image/svg+xml;base64,{data}"><figcaption>Red: lost by more than two hundredths.</figcaption>'
        f"</figure></div>{_lost_table(lost)}</section>"
    )


_ABOUT = (
    "Each other algorithm is tuned for each cell by its cost model, and those that the models rank near the best are "
    "measured. DEMANDJOIN has the same settings everywhere and tunes itself while it runs."
)


def _profiles(cells: Sequence[Cell]) -> list[str]:
    return list(dict.fromkeys(cell.profile for cell in cells))


def _summary_row(profile: str, summary: Summary) -> str:
    published = f"{summary.beside_published:.2f} ({escape(summary.published)})" if summary.published else "–"
    kind = "fails" if summary.lost else "holds"
    return (
        f'<tr><th>{escape(profile)}</th><td>{summary.cells}</td><td><b class="{kind}">{summary.lost}</b></td>'
        f"<td>{summary.beside_best:.2f}</td><td>{summary.beside_single:.2f} ({escape(summary.single)})</td>"
        f"<td>{published}</td></tr>"
    )


def _lost_table(lost: Sequence[Cell]) -> str:
    if not lost:
        return ""
    rows = "\n".join(_lost_row(cell) for cell in sorted(lost, key=lambda cell: cell.ratio))
    return (
        '<details open><summary>Cells that are lost</summary><div class="scroll"><table class="numbers"><thead><tr>'
        "<th>Costs</th><th>Table</th><th>Memory</th><th>Exponent</th><th>Ranks</th><th>DEMANDJOIN</th>"
        f"<th>Best other</th><th>Ratio</th><th>Why</th></tr></thead><tbody>\n{rows}\n</tbody></table></div></details>"
    )


def _lost_row(cell: Cell) -> str:
    shown: Mapping[str, str] = {
        "rows": f"{cell.master_rows / 1e6:g}M",
        "memory": f"{cell.memory_bytes / 1e6:g} MB",
        "exponent": f"{cell.exponent:g}",
        "ranks": cell.ranks,
        "ours": f"{cell.rate:,.0f}",
        "best": f"{float(cell.tuned['service_rate'] or 0):,.0f} ({cell.best})",
    }
    values = "".join(f"<td>{escape(value)}</td>" for value in shown.values())
    return (
        f'<tr><th>{escape(cell.profile)}</th>{values}<td><b class="fails">{cell.ratio:.2f}</b></td>'
        f'<td class="why">{escape(cell.reason)}</td></tr>'
    )
