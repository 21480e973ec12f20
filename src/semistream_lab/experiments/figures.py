"""Draws one figure of an experiment, as PNG and SVG; the same results give the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from semistream.core.arrays import Float64Array
from semistream_lab.experiments.curves import Curve
from semistream_lab.experiments.figure_style import (
    FIGURE_STYLE,
    SEQUENCE,
    Stroke,
    dress_x,
    dress_y,
    strokes_for,
    tick_label,
)
from semistream_lab.experiments.plan import Plan

_WIDTH, _HEIGHT = 4.9, 3.2
_LEGEND_WIDTH = 58
"""About how many letters fit into a line of the legend of a figure of that width."""
_MANY_POINTS = 40


@dataclass(frozen=True)
class Picture:
    """A figure as files."""

    png: bytes
    svg: bytes


def draw(plan: Plan, curves: Sequence[Curve]) -> Picture | None:
    """Draw an experiment in the chart that its plan names; None if nothing was measured."""
    curves = [curve for curve in curves if not curve.is_empty]
    if not curves:
        return None
    with mpl.rc_context(FIGURE_STYLE):
        figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        FigureCanvasAgg(figure)
        CHARTS.get(plan.chart, _lines)(figure, plan, curves)
        return saved(figure)


def saved(figure: Figure) -> Picture:
    """Return a figure as files, in the style that is set."""
    return Picture(_saved(figure, "png", {"Software": None}), _saved(figure, "svg", {"Date": None}))


def _saved(figure: Figure, kind: str, metadata: Mapping[str, None]) -> bytes:
    file = BytesIO()
    figure.savefig(file, format=kind, metadata=dict(metadata))
    return file.getvalue()


def _lines(figure: Figure, plan: Plan, curves: Sequence[Curve]) -> None:
    axes = figure.add_subplot()
    x = _places(plan)
    for curve, stroke in zip(curves, strokes_for([curve.algorithm for curve in curves]), strict=True):
        _curve(axes, x, curve, plan, stroke)
    _dress(axes, plan, curves)
    _legend(figure, *axes.get_legend_handles_labels())


def _curve(axes: Axes, x: Float64Array, curve: Curve, plan: Plan, stroke: Stroke) -> None:
    style = stroke.line()
    if len(x) > _MANY_POINTS:
        style["marker"] = ""
    unit = plan.metric.unit
    axes.errorbar(x, curve.y / unit, yerr=_bars(curve, unit), label=curve.label, capsize=2.5, elinewidth=0.9, **style)


def _bars(curve: Curve, unit: float) -> Float64Array | None:
    return None if np.isnan(curve.confidence).all() else np.nan_to_num(curve.confidence / unit)


def _bar_chart(figure: Figure, plan: Plan, curves: Sequence[Curve]) -> None:
    axes = figure.add_subplot()
    places = np.arange(len(plan.x.values))
    width = 0.8 / len(curves)
    hatches = ("", "///", "...", "\\\\\\", "xx", "--", "++", "oo")
    for index, (curve, stroke) in enumerate(zip(curves, strokes_for([c.algorithm for c in curves]), strict=True)):
        axes.bar(
            places + (index - (len(curves) - 1) / 2) * width,
            curve.y / plan.metric.unit,
            width * 0.92,
            yerr=_bars(curve, plan.metric.unit),
            label=curve.label,
            color=stroke.colour,
            edgecolor="white",
            hatch=hatches[index % len(hatches)],
            error_kw={"elinewidth": 0.9, "capsize": 2.5},
        )
    _dress(axes, plan, curves)
    axes.set_xscale("linear")
    axes.set_xticks(places, [tick_label(x) for x in _places(plan)])
    if len(curves) > 1:
        _legend(figure, *axes.get_legend_handles_labels())


def _relative_bars(figure: Figure, plan: Plan, curves: Sequence[Curve]) -> None:
    """Draw what each series has beside the first one."""
    figure.set_size_inches(_WIDTH * 1.7, _HEIGHT * 1.2)
    first, none = curves[0].y / plan.metric.unit, np.full(len(plan.x.values), np.nan)
    relative = [replace(curve, algorithm="", y=curve.y / first, confidence=none) for curve in curves[1:]]
    if not relative:
        _bar_chart(figure, plan, curves)
        return
    _bar_chart(figure, plan, relative)
    figure.axes[0].axhline(1.0, color="black", linewidth=0.8, linestyle=(0, (4, 3)))


def _grid(figure: Figure, plan: Plan, curves: Sequence[Curve]) -> None:
    """Draw two knobs at once: a map of all their pairs, and a curve for each value of the second."""
    figure.set_size_inches(_WIDTH * 1.7, _HEIGHT)
    left, right = figure.subplots(1, 2)
    values = np.array([curve.y for curve in curves]) / plan.metric.unit
    picture = left.pcolormesh(np.ma.masked_invalid(values), cmap=SEQUENCE, edgecolors="white", linewidth=0.4)
    row, column = np.unravel_index(np.nanargmax(values), values.shape)
    left.plot(column + 0.5, row + 0.5, "*", color="white", markeredgecolor="black", markersize=13)
    left.set_xticks(np.arange(values.shape[1]) + 0.5, [tick_label(x) for x in _places(plan)])
    left.set_yticks(np.arange(values.shape[0]) + 0.5, [curve.label for curve in curves])
    left.tick_params(length=0)
    left.spines[:].set_visible(False)
    left.tick_params(axis="x", rotation=35)
    left.set_xlabel(plan.x.label)
    left.set_ylabel(second_axis(plan))
    bar = figure.colorbar(picture, ax=left, label=plan.metric.label, pad=0.02, format="{x:,g}")
    bar.outline.set_visible(False)
    shades = mpl.colormaps[SEQUENCE](np.linspace(0, 0.88, len(curves)))
    for curve, shade, stroke in zip(curves, shades, strokes_for([""] * len(curves)), strict=True):
        style = {**stroke.line(), "color": shade, "markerfacecolor": shade, "markeredgecolor": shade, "markersize": 4}
        right.plot(_places(plan), curve.y / plan.metric.unit, label=curve.label, **style)
    _dress(right, plan, curves)
    right.tick_params(axis="x", rotation=35)
    right.legend(title=second_axis(plan), loc="center left", bbox_to_anchor=(1.0, 0.5))


def second_axis(plan: Plan) -> str:
    """Return the name of what tells the series of a grid apart."""
    names = [name for name in plan.series[0].settings if name.startswith(("parameter.", "option."))]
    return names[0].split(".", 1)[1].replace("_", " ").capitalize() if names else ""


def _prediction(figure: Figure, plan: Plan, curves: Sequence[Curve]) -> None:
    """Draw what was measured, what the models expect, and how far they are off."""
    figure.set_size_inches(_WIDTH, _HEIGHT * 1.3)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2.6, 1])
    x, unit = _places(plan), plan.metric.unit
    strokes = strokes_for([curve.algorithm for curve in curves])
    handles: list[Any] = []
    for curve, stroke in zip(curves, strokes, strict=True):
        style = {**stroke.line(), "linestyle": "none"}
        above.errorbar(x, curve.y / unit, yerr=_bars(curve, unit), capsize=2.5, elinewidth=0.9, **style)
        handles.append(Line2D([], [], label=f"{curve.label}, measured", **style))
        for values, dashes, filled in ((curve.predicted, "solid", True), (curve.printed, (0, (5, 2)), False)):
            above.plot(x, values / unit, color=stroke.colour, linestyle=dashes, linewidth=1.2)
            look = {**stroke.line(), "linestyle": dashes, "markersize": 4, "linewidth": 1}
            look["markerfacecolor"] = stroke.colour if filled else "white"
            below.plot(x, 100 * (values / curve.y - 1), **look)
    if any(not np.isnan(curve.predicted).all() for curve in curves):
        handles.append(Line2D([], [], color="black", linewidth=1.2, label="corrected model"))
    if any(not np.isnan(curve.printed).all() for curve in curves):
        handles.append(Line2D([], [], color="black", linewidth=1.2, linestyle=(0, (5, 2)), label="printed model"))
    _dress(above, plan, curves, x_label=False)
    below.axhline(0, color="black", linewidth=0.6)
    below.grid(axis="y")
    below.set_ylabel("Deviation (%)")
    dress_x(below, plan.x)
    above.tick_params(axis="x", labelbottom=False)
    figure.align_ylabels([above, below])
    _legend(figure, handles, [str(handle.get_label()) for handle in handles])


CHARTS: Mapping[str, Callable[[Figure, Plan, Sequence[Curve]], None]] = {
    "lines": _lines,
    "bars": _bar_chart,
    "relative-bars": _relative_bars,
    "grid": _grid,
    "prediction": _prediction,
}


def _places(plan: Plan) -> Float64Array:
    return np.array(plan.x.values) / plan.x.unit


def _dress(axes: Axes, plan: Plan, curves: Sequence[Curve], *, x_label: bool = True) -> None:
    values = np.concatenate([curve.y for curve in curves]) / plan.metric.unit
    dress_x(axes, plan.x, label=x_label)
    dress_y(axes, plan.metric, float(np.nanmin(values)), float(np.nanmax(values)))
    if plan.metric.scale == "linear" and np.nanmin(values) >= 0:
        axes.set_ylim(bottom=0)


def _legend(figure: Figure, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """Put the legend above the axes, in as many columns as fit."""
    if len(labels) < 2:
        return
    letters = int(_LEGEND_WIDTH * figure.get_figwidth() / _WIDTH)
    columns = max(1, min(len(labels), letters // (max(map(len, labels)) + 6)))
    figure.legend(handles, labels, loc="outside upper left", ncols=columns, borderaxespad=0.2)
