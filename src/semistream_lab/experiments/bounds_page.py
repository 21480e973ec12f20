"""Draws how far joins are from the best possible, and tells it for the lab's page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from html import escape

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from semistream_lab.experiments.bounds import (
    BOUNDS_GROUP,
    CACHES,
    OURS,
    RULES,
    SETTLED,
    STREAMS,
    TINY_GROUP,
    TINY_JOINS,
    BoundsCells,
)
from semistream_lab.experiments.figure_style import FIGURE_STYLE, strokes_for
from semistream_lab.experiments.figures import Picture, saved

_HATCHES = ("", "///", "...", "\\\\\\", "xx", "--")


def draw_bounds(cells: BoundsCells) -> Mapping[str, Picture]:
    """Draw caches beside MIN, and reads beside their bound, by the names of their files."""
    pictures = {f"{BOUNDS_GROUP}-cache": _drawn(cells, [s for s in cells.streams if s != "sorted"], 2, _cache_panel)}
    settled = [stream for stream in SETTLED if stream in cells.streams]
    if settled:
        pictures[f"{BOUNDS_GROUP}-reads"] = _drawn(cells, settled, 2, _reads_panel)
    return pictures


def draw_tiny(cells: BoundsCells) -> Mapping[str, Picture]:
    """Draw the reads of rules beside the fewest there are."""
    return {TINY_GROUP: _drawn(cells, cells.streams, 1, _tiny_panel)}


def _drawn(
    cells: BoundsCells, streams: Sequence[str], columns: int, panel: Callable[[Axes, BoundsCells, str], None]
) -> Picture:
    with mpl.rc_context(FIGURE_STYLE):
        rows = -(-len(streams) // columns)
        figure = Figure(figsize=(8.6, 2.6 * rows + 0.7), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(rows, columns, squeeze=False, sharey=True).flatten()
        for axes in grid[len(streams) :]:
            axes.set_visible(False)
        for axes, stream in zip(grid, streams, strict=False):
            panel(axes, cells, stream)
            axes.set_title({**STREAMS, **TINY_JOINS}[stream], fontsize=10, loc="left")
            axes.grid(axis="y")
        figure.supxlabel("Zipf exponent", fontsize=10.5)
        handles, labels = grid[len(streams) - 1].get_legend_handles_labels()
        width = max(map(len, labels)) + 6
        figure.legend(handles, labels, loc="outside upper left", ncols=max(1, 105 // width), borderaxespad=0.2)
        return saved(figure)


def _cache_panel(axes: Axes, cells: BoundsCells, stream: str) -> None:
    """Draw the part of MIN's hits that caches of the same size have."""
    names = [name for name in CACHES if name != "min"]
    for name, stroke in zip(names, strokes_for([""] * len(names)), strict=True):
        column = "hit_share" if name == "demandjoin" else f"{name}_share"
        ratios = cells.ratios(stream, OURS, column, "min_share")
        axes.plot(cells.exponents, _values(ratios), label=CACHES[name], **stroke.line())
    axes.axhline(1.0, color="black", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_xticks(cells.exponents, [f"{exponent:g}" for exponent in cells.exponents])
    axes.set_ylim(0, 1.05)
    axes.set_ylabel("Hits beside those of MIN")


def _reads_panel(axes: Axes, cells: BoundsCells, stream: str) -> None:
    """Draw what a read answers beside the most it can."""
    for number, (series, stroke) in enumerate(zip(cells.series, strokes_for([""] * len(cells.series)), strict=True)):
        ratios = cells.ratios(stream, series, "tuples_per_read", "on_schedule")
        _bars(axes, number, len(cells.series), _values(ratios), series, stroke.colour)
        best = cells.ratios(stream, series, "at_best", "on_schedule")
        places = np.arange(len(cells.exponents)) + (number - (len(cells.series) - 1) / 2) * 0.8 / len(cells.series)
        label = "the most without knowing the future" if not number else ""
        axes.plot(places, _values(best), "_", color="black", markersize=13, label=label or None)
    axes.axhline(1.0, color="black", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_xticks(np.arange(len(cells.exponents)), [f"{exponent:g}" for exponent in cells.exponents])
    axes.set_ylabel("Tuples a read beside 2·h$_S$/(Σ√π)²")


def _tiny_panel(axes: Axes, cells: BoundsCells, stream: str) -> None:
    """Draw the reads of each rule beside the fewest."""
    (series,) = cells.series
    rules = {**RULES, "fewest_by_min": "fewest with MIN as the cache"} if stream == "cache" else RULES
    colours = [stroke.colour for stroke in strokes_for([""] * 8)]
    for number, name in enumerate(rules):
        ratios = cells.ratios(stream, series, name, "fewest")
        _bars(axes, number, len(RULES) + 1, _values(ratios), rules[name], colours[number])
    axes.axhline(1.0, color="black", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_xticks(np.arange(len(cells.exponents)), [f"{exponent:g}" for exponent in cells.exponents])
    axes.set_ylabel("Reads beside the fewest")


def _bars(axes: Axes, number: int, count: int, values: np.ndarray, label: str, colour: str) -> None:
    places = np.arange(len(values)) + (number - (count - 1) / 2) * 0.8 / count
    hatch = _HATCHES[number % len(_HATCHES)]
    axes.bar(places, values, 0.74 / count, label=label, color=colour, edgecolor="white", hatch=hatch)


def _values(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values])


def bounds_card(cells: BoundsCells, pictures: Mapping[str, Picture]) -> str:
    """Return the part of the page that tells about bounds."""
    heads = "".join(f"<th>{escape(name)}</th>" for name in CACHES.values())
    caches = "\n".join(
        f"<tr><th>{escape(STREAMS[stream])}</th><td>{exponent:g}</td>{_cache_columns(cells, stream, exponent)}</tr>"
        for stream in cells.streams
        for exponent in cells.exponents
    )
    reads = "\n".join(
        f"<tr><th>{escape(STREAMS[stream])}</th><td>{exponent:g}</td>{_read_columns(cells, stream, exponent)}</tr>"
        for stream in SETTLED
        for exponent in cells.exponents
    )
    return (
        f'<section class="card" id="{BOUNDS_GROUP}"><h3>The distance to the best possible'
        f'<span class="id">{BOUNDS_GROUP}</span></h3><p class="says">{escape(_ABOUT)}</p>{_figures(pictures)}'
        f"<table><thead><tr><th>Stream</th><th>Exponent</th>{heads}</tr></thead><tbody>{caches}</tbody></table>"
        "<table><thead><tr><th>Stream</th><th>Exponent</th><th>DEMANDJOIN: tuples a read</th>"
        "<th>on the best schedule</th><th>at best</th><th>disk time beside the best fixed runs</th></tr></thead>"
        f"<tbody>{reads}</tbody></table></section>"
    )


def tiny_card(pictures: Mapping[str, Picture]) -> str:
    """Return the part of the page that tells about tiny joins."""
    return (
        f'<section class="card" id="{TINY_GROUP}"><h3>The fewest reads there are'
        f'<span class="id">{TINY_GROUP}</span></h3><p class="says">{escape(_ABOUT_TINY)}</p>'
        f"{_figures(pictures)}</section>"
    )


def _figures(pictures: Mapping[str, Picture]) -> str:
    figures = "".join(
        f'<figure><img alt="{escape(_CAPTIONS[name])}" src="data:image/svg+xml;base64,'
        f'{b64encode(picture.svg).decode()}"><figcaption>{escape(_CAPTIONS[name])}</figcaption></figure>'
        for name, picture in pictures.items()
    )
    return f'<div class="figures wide">{figures}</div>'


def _cache_columns(cells: BoundsCells, stream: str, exponent: float) -> str:
    cell = cells.at(stream, exponent, OURS)
    names = ["hit_share" if name == "demandjoin" else f"{name}_share" for name in CACHES]
    return "".join(_shown(None if cell is None else cell.number(name), ".3f") for name in names)


def _read_columns(cells: BoundsCells, stream: str, exponent: float) -> str:
    cell = cells.at(stream, exponent, OURS)
    if cell is None:
        return "<td>–</td>" * 4
    numbers = "".join(_shown(cell.number(name), ".2f") for name in ("tuples_per_read", "on_schedule", "at_best"))
    return numbers + _shown(cell.ratio("disk_seconds_per_tuple", "disk_seconds_on_schedule"), ".3f")


def _shown(value: float | None, digits: str) -> str:
    return "<td>–</td>" if value is None else f"<td>{value:{digits}}</td>"


_ABOUT = (
    "Shares of the tuples that caches of the same size would have answered on the very stream that DEMANDJOIN joined. "
    "MIN knows the future and may begin with any rows; the others get a row as late as a read brings it here. Below, "
    "what a read of a page answers beside the most it can."
)
_ABOUT_TINY = (
    "Forty joins of a few pages for each exponent. The fewest reads are found by following all ways to read and to "
    "cache; the rules do not know the future."
)
_CAPTIONS = {
    f"{BOUNDS_GROUP}-cache": "Hits of caches of DEMANDJOIN's size beside those of Belady's MIN, stream by stream.",
    f"{BOUNDS_GROUP}-reads": "Tuples answered by a read of a page group, beside the bound for reads on a schedule.",
    TINY_GROUP: "Reads of rules that choose pages, beside the fewest there are, in tiny joins.",
}
