"""Draws the family on Spark, and tells it for the lab's page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from semistream_lab.experiments.figure_style import FIGURE_STYLE
from semistream_lab.experiments.figures import Picture, saved
from semistream_lab.experiments.spark_family import (
    CLAIMED,
    FAMILY_GROUP,
    IS_LEVEL,
    LOOP,
    REVERSED,
    STORES,
    SURVIVES,
    WAYS,
    FamilyCells,
)

_MARKS: Mapping[str, Mapping[str, Any]] = {
    LOOP: {"marker": "|", "color": "#000000", "markersize": 11, "markeredgewidth": 1.6},
    WAYS[0]: {"marker": "o", "color": "#0060a0"},
    WAYS[1]: {"marker": "o", "color": "#0060a0", "markerfacecolor": "white"},
    WAYS[2]: {"marker": "s", "color": "#d98c00"},
    WAYS[3]: {"marker": "s", "color": "#d98c00", "markerfacecolor": "white"},
}
_LABELS = {LOOP: "the papers' loop", **{way: way for way in WAYS}}
_ROW_INCHES = 0.24
_NARROW = 30.0
"""An axis that spans less has ticks between powers of ten."""
_OFFSETS = (0.2, 0.07, -0.07, -0.2)
_SIGNS = {SURVIVES: "yes", IS_LEVEL: "=", REVERSED: "no", None: "–"}

Value = Callable[[str, str], float | None]
"""Returns a number of an algorithm in a way."""


def draw_family(cells: FamilyCells) -> Mapping[str, Picture]:
    """Draw the rates that stores allow, and what each row costs, by the names of their files."""
    order = _by_loop(cells)
    rates: list[tuple[str, Value]] = [
        (title, lambda algorithm, way, profile=profile: cells.rate(algorithm, way, profile))  # type: ignore[misc]
        for profile, title in STORES.items()
    ]

    def count(name: str) -> Value:
        def value(algorithm: str, way: str) -> float | None:
            cell = cells.at(algorithm, way)
            return None if cell is None else max(cell.a_row(name), 1e-4)

        return value

    counts = [("requests a row", count("read_requests")), ("bytes a row", count("bytes_read"))]
    return {
        f"{FAMILY_GROUP}-rates": _drawn(order, rates, (LOOP, *WAYS), "Rows a second that the store allows"),
        f"{FAMILY_GROUP}-counts": _drawn(order, counts, WAYS, ""),
    }


def _by_loop(cells: FamilyCells) -> list[str]:
    """Return the algorithms, the slowest in the papers' loop on their disk first."""
    return sorted(cells.algorithms, key=lambda name: cells.rate(name, LOOP, "papers") or 0.0)


def _drawn(order: Sequence[str], panels: Sequence[tuple[str, Value]], ways: Sequence[str], label: str) -> Picture:
    with mpl.rc_context(FIGURE_STYLE):
        figure = Figure(figsize=(2.6 * len(panels) + 1.8, _ROW_INCHES * len(order) + 1.2), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, (title, value) in zip(grid, panels, strict=True):
            _panel(axes, order, value, ways)
            axes.set_title(title, fontsize=10)
        grid[0].set_yticks(range(len(order)), order)
        grid[0].set_ylim(-0.7, len(order) - 0.3)
        if label:
            figure.supxlabel(label, fontsize=10.5)
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=3, borderaxespad=0.2)
        return saved(figure)


def _panel(axes: Axes, order: Sequence[str], value: Value, ways: Sequence[str]) -> None:
    places = np.arange(len(order), dtype=np.float64)
    all_numbers: list[float] = []
    for way in ways:
        numbers = [value(algorithm, way) for algorithm in order]
        all_numbers += [number for number in numbers if number is not None]
        if not any(numbers):
            continue
        at = places + (0.0 if way == LOOP else _OFFSETS[WAYS.index(way)])
        values = [np.nan if number is None else number for number in numbers]
        axes.plot(values, at, linestyle="none", label=_LABELS[way], **_MARKS[way])
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda number, _: _short(number)))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    is_narrow = max(all_numbers, default=1.0) < _NARROW * min(all_numbers, default=1.0)
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0) if is_narrow else (1.0,), numticks=6))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="both")


def _short(number: float) -> str:
    """Return a number of an axis in few letters."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g} {letter}"
    return f"{number:g}"


def family_card(cells: FamilyCells, pictures: Mapping[str, Picture]) -> str:
    """Return the part of the page that tells about the family on Spark."""
    figures = "".join(
        f'<figure><img alt="{escape(_CAPTIONS[name])}" src="data:image/svg+xml;base64,'
        f'{b64encode(picture.svg).decode()}"><figcaption>{escape(_CAPTIONS[name])}</figcaption></figure>'
        for name, picture in pictures.items()
    )
    heads = "".join(f"<th>{escape(text)}</th>" for text in _heads())
    body = "\n".join(
        f"<tr><th>{escape(first)}</th>{''.join(f'<td>{escape(text)}</td>' for text in texts)}</tr>"
        for first, *texts in order_rows(cells)
    )
    return (
        f'<section class="card" id="{FAMILY_GROUP}"><h3>Every algorithm on Spark'
        f'<span class="id">{FAMILY_GROUP}</span></h3><p class="says">{escape(_ABOUT)}</p>'
        f'<div class="figures wide">{figures}</div>'
        f'<div class="scroll"><table class="numbers"><thead><tr><th></th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></section>"
    )


def _heads() -> list[str]:
    return [f"{profile}, {_LABELS[way]}" for profile in STORES for way in (LOOP, *WAYS)]


def order_rows(cells: FamilyCells) -> list[list[str]]:
    """Return what the papers claim is faster than what, and whether it is, store by store and way by way."""
    rows = []
    for better, worse in CLAIMED:
        verdicts = [cells.verdict(better, worse, way, profile) for profile in STORES for way in (LOOP, *WAYS)]
        rows.append([f"{better} faster than {worse}", *(_SIGNS[verdict] for verdict in verdicts)])
    alike = [cells.likeness(way, profile) for profile in STORES for way in (LOOP, *WAYS)]
    rows.append(["Correlation of ranks with the loop", *("–" if one is None else f"{one:.2f}" for one in alike)])
    return rows


_ABOUT = (
    "What was counted on Spark with a bursty stream, charged with the costs of three stores; Spark's own time is left "
    "out. The papers' loop is a stream that never makes the join wait, with all of the memory. In the table, = is a "
    "difference of less than a twentieth."
)
_CAPTIONS = {
    f"{FAMILY_GROUP}-rates": "Rows a second that each store allows, in the papers' loop and in micro-batches.",
    f"{FAMILY_GROUP}-counts": "Requests and bytes for each row of the stream on Spark.",
}
