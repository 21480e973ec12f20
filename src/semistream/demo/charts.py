"""Small charts over time as SVG, drawn by hand so that they need no library and take their colours from the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

_WIDTH, _HEIGHT = 560, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 12, 34
_MAX_BAR_WIDTH = 14.0
_NEXT_TO_NOTHING = 1e-300
"""Parts of anything smaller may be 0, which has no logarithm."""
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True)
class Series:
    """Values over time, with how they are drawn: `colour` is a class of the page's style."""

    name: str
    values: Sequence[float]
    colour: str
    kind: Literal["line", "area", "dashes", "bars"] = "line"


@dataclass(frozen=True)
class Chart:
    """Series over the same moments; with `stacked` each series stands on the one before."""

    title: str
    note: str
    seconds: Sequence[float]
    series: Sequence[Series]
    shown: Callable[[float], str]
    """Makes the text of a value."""
    stacked: bool = False
    top: float | None = None
    """The upper end of the scale, if it is fixed."""

    def svg(self) -> str:
        """Return the drawing, with what each moment's values are for whoever points at it."""
        bottoms, tops = self._levels()
        highest = self.top if self.top is not None else max((max(level, default=0.0) for level in tops), default=0.0)
        marks = _marks(highest)
        scale = _Scale(max(self.seconds, default=0.0), self.top if self.top is not None else marks[-1] or 1.0)
        parts = [self._grid(scale, marks)]
        for one, bottom, level in zip(self.series, bottoms, tops, strict=True):
            parts.append(_drawn(one, self.seconds, bottom, level, scale))
        parts.append(self._hints(scale))
        return (
            f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(self.title)}">'
            + "".join(parts)
            + "</svg>"
        )

    def legend(self) -> str:
        """Return the names of the series beside their colours, as HTML."""
        if len(self.series) < 2:
            return ""
        items = (
            f'<span class="key"><i class="swatch {one.colour}{" dashes" if one.kind == "dashes" else ""}"></i>'
            f"{escape(one.name)}</span>"
            for one in self.series
        )
        return f'<p class="legend">{"".join(items)}</p>'

    def _levels(self) -> tuple[list[list[float]], list[list[float]]]:
        bottoms, tops = [], []
        below = [0.0] * len(self.seconds)
        for one in self.series:
            bottoms.append(below)
            level = [base + value for base, value in zip(below, one.values, strict=True)]
            tops.append(level)
            if self.stacked:
                below = level
        return bottoms, tops

    def _grid(self, scale: _Scale, marks: Sequence[float]) -> str:
        lines = []
        for mark in marks:
            y, text = scale.y(mark), escape(self.shown(mark))
            lines.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            lines.append(f'<text class="tick" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
        for mark in _marks(scale.seconds, 6):
            if mark <= scale.seconds * 1.001:
                text = f"{mark:g} s"
                lines.append(
                    f'<text class="tick" x="{scale.x(mark):.1f}" y="{_HEIGHT - 12}" text-anchor="middle">{text}</text>'
                )
        return "".join(lines)

    def _hints(self, scale: _Scale) -> str:
        """Return unseen strips, one a moment, whose titles browsers show."""
        strips = []
        for number, second in enumerate(self.seconds):
            before = self.seconds[number - 1] if number else 0.0
            after = self.seconds[number + 1] if number + 1 < len(self.seconds) else second
            left, right = scale.x((before + second) / 2), scale.x((second + after) / 2)
            values = "; ".join(f"{one.name}: {self.shown(one.values[number])}" for one in self.series)
            strips.append(
                f'<rect class="hint" x="{left:.1f}" y="{_TOP}" width="{max(1.0, right - left):.1f}" '
                f'height="{_HEIGHT - _TOP - _BOTTOM}"><title>{escape(f"{second:.1f} s. {values}")}</title></rect>'
            )
        return "".join(strips)


class _Scale:
    """Turns seconds and values into places of the drawing."""

    def __init__(self, seconds: float, top: float) -> None:
        self.seconds = seconds or 1.0
        self._top = top

    def x(self, seconds: float) -> float:
        return _LEFT + seconds / self.seconds * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - value / self._top * (_HEIGHT - _TOP - _BOTTOM)


def _drawn(
    series: Series, seconds: Sequence[float], bottom: Sequence[float], level: Sequence[float], scale: _Scale
) -> str:
    if series.kind == "bars":
        width = max(1.5, min(_MAX_BAR_WIDTH, 0.7 * (scale.x(scale.seconds) - scale.x(0)) / max(1, len(seconds))))
        floor = scale.y(0)
        return "".join(
            f'<rect class="bar {series.colour}" x="{max(_LEFT, min(scale.x(at), _WIDTH - _RIGHT) - width):.1f}" '
            f'y="{scale.y(value):.1f}" width="{width:.1f}" height="{max(0.0, floor - scale.y(value)):.1f}"/>'
            for at, value in zip(seconds, level, strict=True)
        )
    upper = [f"{scale.x(at):.1f},{scale.y(value):.1f}" for at, value in zip(seconds, level, strict=True)]
    if series.kind == "area":
        lower = [f"{scale.x(at):.1f},{scale.y(value):.1f}" for at, value in zip(seconds, bottom, strict=True)]
        return f'<polygon class="area {series.colour}" points="{" ".join([*upper, *reversed(lower)])}"/>'
    dashes = " dashes" if series.kind == "dashes" else ""
    if len(upper) == 1:
        x, y = upper[0].split(",")
        return f'<circle class="dot {series.colour}" cx="{x}" cy="{y}" r="3"/>'
    return f'<polyline class="line {series.colour}{dashes}" points="{" ".join(upper)}"/>'


def _marks(highest: float, wanted: int = 4) -> list[float]:
    """Return round numbers from 0 up to the first that is not below `highest`."""
    if highest < _NEXT_TO_NOTHING:
        return [0.0, 1.0]
    rough = highest / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(one * power for one in _STEPS if one * power >= rough * 0.999)
    return [number * step for number in range(math.ceil(highest / step - 1e-9) + 1)]
