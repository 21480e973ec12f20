"""How the lab's figures look: as in a printed paper, readable without colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cycler import cycler
from matplotlib import ticker
from matplotlib.axes import Axes

from semistream_lab.experiments.plan import Axis, Metric

_BLACK, _ORANGE, _SKY, _GREEN, _BLUE, _RED, _PURPLE, _GREY = (
    "#000000",
    "#d98c00",
    "#3f9fd6",
    "#008f68",
    "#0060a0",
    "#c44e00",
    "#b05a90",
    "#6b6b6b",
)
"""The colours of Okabe and Ito, a little darker for white paper: told apart by every kind of eye."""

SEQUENCE = "cividis"
"""From dark to light, also in grey."""

FIGURE_STYLE: dict[Any, Any] = {
    "font.family": "STIXGeneral",  # comes with Matplotlib, so that figures are the same everywhere
    "mathtext.fontset": "stix",
    "font.size": 10,
    "axes.labelsize": 10.5,
    "legend.fontsize": 9.5,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=[_BLUE, _ORANGE, _GREEN, _RED, _PURPLE, _SKY, _BLACK, _GREY]),
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.5,
    "xtick.direction": "out",
    "ytick.direction": "out",
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.minor.visible": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 5.5,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "legend.columnspacing": 1.6,
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "semistream",
    "svg.fonttype": "path",
    "savefig.dpi": 300,
}


@dataclass(frozen=True)
class Stroke:
    """How one curve is drawn."""

    colour: str
    marker: str
    dashes: str | tuple[float, tuple[float, ...]]
    filled: bool = True

    def line(self) -> dict[str, Any]:
        """Return the arguments for a line with markers."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "linestyle": self.dashes,
            "markerfacecolor": self.colour if self.filled else "white",
            "markeredgecolor": self.colour,
            "markeredgewidth": 1.1,
        }


_SOLID = "solid"
_DASHED = (0.0, (5.0, 2.0))
_DOTTED = (0.0, (1.2, 1.6))
_DASH_DOT = (0.0, (5.0, 1.6, 1.2, 1.6))
_LONG = (0.0, (8.0, 2.0))
_TWO_DOTS = (0.0, (5.0, 1.6, 1.2, 1.6, 1.2, 1.6))

_STROKES = (
    Stroke(_BLUE, "o", _SOLID),
    Stroke(_ORANGE, "s", _DASHED),
    Stroke(_GREEN, "^", _DASH_DOT),
    Stroke(_RED, "D", _DOTTED),
    Stroke(_PURPLE, "v", _LONG),
    Stroke(_SKY, "P", _TWO_DOTS, filled=False),
    Stroke(_BLACK, "X", _SOLID),
    Stroke(_GREY, "o", _DASHED, filled=False),
)

_OF_ALGORITHM = {
    "inlj": Stroke(_GREY, "v", _DOTTED),
    "meshjoin": Stroke(_ORANGE, "s", _DASHED),
    "r-meshjoin": Stroke(_PURPLE, "D", _DASH_DOT, filled=False),
    "partitioned": Stroke(_GREY, "P", _LONG),
    "ssij": Stroke(_BLACK, "X", _DOTTED),
    "hybridjoin": Stroke(_BLUE, "o", _SOLID),
    "x-hybridjoin": Stroke(_GREEN, "^", _DASH_DOT),
    "x-hybridjoin-tuned": Stroke(_RED, "D", _SOLID),
    "optimised-x-hybridjoin": Stroke(_BLACK, "P", _SOLID),
    "cachejoin": Stroke(_GREEN, "^", _DASHED, filled=False),
    "sscj": Stroke(_SKY, "v", _LONG),
    "hybridjoin-l": Stroke(_SKY, "o", _DASHED, filled=False),
    "hybridjoin-pq": Stroke(_RED, "D", _SOLID),
    "cachejoin-l": Stroke(_PURPLE, "^", _DOTTED, filled=False),
    "cachejoin-pq": Stroke(_BLACK, "s", _SOLID),
    "p-cachejoin": Stroke(_SKY, "s", _DASH_DOT),
    "op-cachejoin": Stroke(_RED, "o", _SOLID),
    "demandjoin": Stroke(_PURPLE, "*", _SOLID),
}


def strokes_for(algorithms: Sequence[str]) -> list[Stroke]:
    """Return a stroke for each curve: an algorithm looks the same in every figure where it has one curve."""
    if len(set(algorithms)) == len(algorithms) and all(name in _OF_ALGORITHM for name in algorithms):
        return [_OF_ALGORITHM[name] for name in algorithms]
    return [_STROKES[index % len(_STROKES)] for index in range(len(algorithms))]


def dress_x(axes: Axes, axis: Axis, *, label: bool = True) -> None:
    """Give an axes its x axis: a tick at each place that was measured, if they are few."""
    places = [value / axis.unit for value in axis.values]
    axes.set_xscale(_scale_name(axis.scale))
    if axis.scale != "linear" or len(places) <= _MAX_TICKS:
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    if len(places) <= _MAX_TICKS:
        axes.set_xticks(places, labels_that_fit(places, axis.scale))
    if label:
        axes.set_xlabel(axis.label)


def dress_y(axes: Axes, metric: Metric, smallest: float, largest: float) -> None:
    """Give an axes its y axis for values in a range."""
    axes.set_yscale(_scale_name(metric.scale))
    axes.set_ylabel(metric.label)
    axes.grid(axis="y")
    if metric.scale == "log":
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: tick_label(value)))
        few = largest < 10 * smallest  # less than a decade has one labelled tick at most
        axes.yaxis.set_minor_formatter(ticker.FuncFormatter(_two_and_five) if few else ticker.NullFormatter())
    elif largest >= _WITH_COMMAS:
        axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))


def _two_and_five(value: float, _: int | None) -> str:
    digit = round(value / 10 ** np.floor(np.log10(value)))
    return tick_label(value) if digit in (2, 5) else ""


def tick_label(value: float) -> str:
    """Return a place of an axis in about three digits."""
    return f"{value:,.0f}" if abs(value) >= _THREE_DIGITS else f"{value:.3g}"


def labels_that_fit(places: Sequence[float], scale: str) -> list[str]:
    """Return a label for each place, empty where it would run into the one before."""
    along = np.log(places) if scale == "log" else np.asarray(places, dtype=np.float64)
    along = (along - along.min()) / max(float(np.ptp(along)), 1e-12)
    labels, free = [], -1.0
    for place, where in zip(places, along, strict=True):
        label = tick_label(place)
        half = _LETTER_SHARE * len(label) / 2
        fits = where - half >= free
        labels.append(label if fits else "")
        free = where + half + _GAP_SHARE if fits else free
    return labels


_MAX_TICKS = 12
_THREE_DIGITS = 100
_WITH_COMMAS = 1000
_LETTER_SHARE, _GAP_SHARE = 0.016, 0.012
"""The width of a letter and of a gap between labels, as shares of the axis."""


def _scale_name(scale: str) -> str:
    return "log" if scale == "log" else "linear"
