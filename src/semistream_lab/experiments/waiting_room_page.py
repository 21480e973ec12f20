"""Draws what the simulated waiting room shows, and tells it for the lab's page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from html import escape
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from semistream_lab.experiments.figure_style import FIGURE_STYLE, strokes_for, tick_label
from semistream_lab.experiments.figures import Picture, saved
from semistream_lab.experiments.waiting_room import LONG, OURS, ROOM, ROOM_GROUP, SHORT, STORES, WAYS, RoomCells

_BEHIND = "x"
_HATCHES = ("///", "", "...")
_COLOURS = ("#d98c00", "#6b6b6b", "#0060a0")
_NO_RATE = 10.0


def draw_room(cells: RoomCells) -> Mapping[str, Picture]:
    """Draw median latency, requests a row and sustainable rates, by the names of their files."""
    pictures = {}
    for name, metric, label in (
        ("latency", "latency_p50", "Median latency (s)"),
        ("requests", "requests_per_row", "Requests a row"),
    ):
        if cells.rates:
            pictures[f"{ROOM_GROUP}-{name}"] = _drawn(cells, metric, label)
    if any(not cell.rate for cell in cells.cells):
        pictures[f"{ROOM_GROUP}-rates"] = _drawn_rates(cells)
    return pictures


def _drawn(cells: RoomCells, metric: str, label: str) -> Picture:
    """Draw a number of DEMANDJOIN over the rate: stores across, exponents downwards."""
    profiles, exponents = cells.profiles, cells.exponents
    with mpl.rc_context(FIGURE_STYLE):
        figure = Figure(figsize=(2.3 * len(profiles) + 0.6, 1.75 * len(exponents) + 0.7), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(len(exponents), len(profiles), squeeze=False, sharex=True, sharey=True)
        for row, exponent in enumerate(exponents):
            for column, profile in enumerate(profiles):
                axes = grid[row, column]
                _panel(axes, cells, metric, profile, exponent)
                if not row:
                    axes.set_title(STORES[profile], fontsize=10)
                if not column:
                    axes.set_ylabel(f"exponent {exponent:g}")
        figure.supylabel(label, fontsize=10.5)
        figure.supxlabel("Rows a second", fontsize=10.5)
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=len(labels), borderaxespad=0.2)
        return saved(figure)


def _panel(axes: Axes, cells: RoomCells, metric: str, profile: str, exponent: float) -> None:
    for way, stroke in zip(WAYS, strokes_for(["", "", ""]), strict=True):
        numbers = [cells.number(metric, profile, exponent, OURS, way, rate) for rate in cells.rates]
        axes.plot(cells.rates, [np.nan if value is None else value for value in numbers], label=way, **stroke.line())
        cell_at = {rate: cells.at(profile, exponent, OURS, way, rate) for rate in cells.rates}
        late = [rate for rate, cell in cell_at.items() if cell is not None and cell.measured.get("keeps_up") is False]
        shown = [value if rate in late else None for rate, value in zip(cells.rates, numbers, strict=True)]
        hollow = {**stroke.line(), "linestyle": "none", "markerfacecolor": "white"}
        axes.plot(cells.rates, [np.nan if value is None else value for value in shown], **hollow)
        behind = [rate for rate, value in zip(cells.rates, shown, strict=True) if rate in late and value is None]
        if behind:
            place = 0.96 - 0.07 * WAYS.index(way)
            style: dict[str, Any] = {"color": stroke.colour, "transform": axes.get_xaxis_transform(), "clip_on": False}
            axes.plot(behind, [place] * len(behind), _BEHIND, **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(cells.rates, [tick_label(rate) for rate in cells.rates])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.margins(x=0.12)
    axes.grid(axis="y")


def _drawn_rates(cells: RoomCells) -> Picture:
    """Draw the rates that triggers sustain: an algorithm and an exponent a group of bars, a store a panel."""
    profiles = cells.profiles
    groups = [(algorithm, exponent) for algorithm in cells.algorithms for exponent in cells.exponents]
    with mpl.rc_context(FIGURE_STYLE):
        figure = Figure(figsize=(9.2, 1.9 * len(profiles) + 0.9), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, profile in zip(figure.subplots(len(profiles), 1, squeeze=False)[:, 0], profiles, strict=True):
            for number, way in enumerate(WAYS):
                rates = [cells.sustainable(profile, exponent, algorithm, way) for algorithm, exponent in groups]
                axes.bar(
                    np.arange(len(groups)) + (number - 1) * 0.27,
                    [np.nan if rate is None else max(rate, _NO_RATE) for rate in rates],
                    0.25,
                    label=way,
                    color=_COLOURS[number],
                    edgecolor="white",
                    hatch=_HATCHES[number],
                )
            axes.set_yscale("log")
            axes.set_ylim(_NO_RATE, 4e5)
            axes.set_xlim(-0.6, len(groups) - 0.4)
            axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: tick_label(value)))
            axes.set_xticks(np.arange(len(groups)), [f"{exponent:g}" for _, exponent in groups])
            axes.tick_params(axis="x", length=0)
            axes.grid(axis="y")
            axes.set_title(STORES[profile], fontsize=10, loc="left")
        width = len(cells.exponents)
        for number, algorithm in enumerate(cells.algorithms):
            place = ((number + 0.5) * width - 0.5, -0.32)
            axes.annotate(algorithm, place, xycoords=axes.get_xaxis_transform(), ha="center", annotation_clip=False)
        figure.supylabel("Rows a second that the trigger sustains", fontsize=10.5)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=len(labels), borderaxespad=0.2)
        return saved(figure)


def room_card(cells: RoomCells, pictures: Mapping[str, Picture]) -> str:
    """Return the part of the page that tells about the waiting room."""
    figures = "".join(
        f'<figure><img alt="{escape(_ALTS[name])}" src="data:image/svg+xml;base64,{b64encode(picture.svg).decode()}">'
        f"<figcaption>{escape(_CAPTIONS[name])}</figcaption></figure>"
        for name, picture in pictures.items()
    )
    rows = "\n".join(_table_row(cells, profile, exponent) for profile in cells.profiles for exponent in cells.exponents)
    heads = "".join(f"<th>{escape(way)}</th>" for way in WAYS)
    return (
        f'<section class="card" id="{ROOM_GROUP}"><h3>Rows that wait between micro-batches'
        f'<span class="id">{ROOM_GROUP}</span></h3><p class="says">{escape(_ABOUT)}</p>'
        f'<div class="figures wide">{figures}</div>'
        f"<table><thead><tr><th>Store</th><th>Exponent</th>{heads}<th>Gain of the room</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></section>"
    )


def _table_row(cells: RoomCells, profile: str, exponent: float) -> str:
    rates = {way: cells.sustainable(profile, exponent, OURS, way) for way in (SHORT, LONG, ROOM)}
    shown = "".join(f"<td>{'–' if rate is None else f'{rate:,.0f}'}</td>" for rate in rates.values())
    short, room = rates[SHORT], rates[ROOM]
    gain = f"{room / short:.1f}" if short and room is not None else "–"
    return f"<tr><th>{escape(STORES[profile])}</th><td>{exponent:g}</td>{shown}<td>{gain}</td></tr>"


_ABOUT = (
    "One task of 64 MB joins a steady stream with 8 million rows, in micro-batches. Without a room every row leaves "
    "with its micro-batch; with one, hits leave at once and the other rows within ten seconds. The table has the rates "
    "that DEMANDJOIN sustains."
)
_CAPTIONS = {
    f"{ROOM_GROUP}-latency": "DEMANDJOIN, from event to end of the micro-batch; hollow: too slow, ×: far too slow.",
    f"{ROOM_GROUP}-requests": "DEMANDJOIN, requests to the store for each row of the stream.",
    f"{ROOM_GROUP}-rates": "The highest rate at which micro-batches take no longer than the trigger, up to 200,000.",
}
_ALTS = {
    f"{ROOM_GROUP}-latency": "Median latency of DEMANDJOIN over the rate, with and without a room",
    f"{ROOM_GROUP}-requests": "Requests a row of DEMANDJOIN over the rate, with and without a room",
    f"{ROOM_GROUP}-rates": "Sustainable rates of four algorithms, with and without a room",
}
