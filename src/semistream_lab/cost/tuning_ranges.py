"""What the tuner may try: the parameters that divide memory or steer, and between which bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from semistream.engine.recipe import RANGES, BlockCaching, Recipe
from semistream_lab.cost.situation import Situation

_LARGEST_READ_SHARE = 16
"""A read may take one part in so many of the memory (`semistream.engine.sizing`)."""
_STREAM_TUPLE_BYTES = 20


@dataclass(frozen=True)
class Axis:
    """The values of one parameter that are worth a try."""

    parameter: str
    low: float
    high: float
    even: bool = False
    """Steps are even; otherwise each is the same multiple of the one before."""
    extra: tuple[float, ...] = ()
    """Values beside the steps, such as 0 for none."""
    whole: bool = False

    def values(self, count: int) -> list[float]:
        """Return about `count` values, the extra ones first."""
        return self._within(self.low, self.high, count, self.extra)

    def around(self, value: float, steps: int, count: int) -> list[float]:
        """Return `count` values around one of a grid of `steps`, up to its neighbours there."""
        if value in self.extra or not self.low <= value <= self.high:
            return [value]
        if self.even:
            step = (self.high - self.low) / max(1, steps - 1)
            low, high = value - step, value + step
        else:
            ratio = (self.high / self.low) ** (1 / max(1, steps - 1))
            low, high = value / ratio, value * ratio
        return self._within(max(self.low, low), min(self.high, high), count, (value,))

    def _within(self, low: float, high: float, count: int, extra: tuple[float, ...]) -> list[float]:
        spread = np.linspace(low, high, count) if self.even else np.geomspace(low, high, count)
        values = np.round(spread) if self.whole else spread
        digits = [float(f"{value:.6g}") for value in values.tolist()]
        return list(dict.fromkeys([*extra, *digits]))


_Bounds = Callable[[Situation, Recipe], Axis]


def _read_bytes(situation: Situation, _: Recipe) -> Axis:
    page = situation.rows_per_page * situation.row_bytes
    most = min(situation.memory_bytes / _LARGEST_READ_SHARE, situation.master_rows * situation.row_bytes / 4)
    return Axis("read_bytes", page, max(2 * page, most), whole=True)


def _parts(situation: Situation, _: Recipe) -> Axis:
    pages = situation.master_rows / situation.rows_per_page
    return Axis("parts", min(20.0, pages), max(40.0, pages), whole=True)


def _handover_bytes(situation: Situation, _: Recipe) -> Axis:
    low = max(1000.0, 64.0 * _STREAM_TUPLE_BYTES)
    return Axis("handover_bytes", low, max(2 * low, situation.memory_bytes / 10), whole=True)


def _threshold(_: Situation, recipe: Recipe) -> Axis:
    if isinstance(recipe.caching, BlockCaching):
        return Axis("threshold", 0.25, 8.0)
    return Axis("threshold", 1.0, 64.0, whole=True, extra=(0.0,))


_AXES: Mapping[str, _Bounds] = {
    "read_bytes": _read_bytes,
    "parts": _parts,
    "cache_share": lambda _, __: Axis("cache_share", 0.002, 0.6, extra=(0.0,)),
    "pinned_share": lambda _, __: Axis("pinned_share", 0.0002, 0.3),
    "handover_bytes": _handover_bytes,
    "threshold": _threshold,
    "position": lambda _, __: Axis("position", 0.02, 0.98, even=True),
    "eagerness": lambda _, __: Axis("eagerness", 0.25, 16.0),
    "entry": lambda _, __: Axis("entry", 0.25, 16.0),
    "buffer_fill": lambda _, __: Axis("buffer_fill", 0.05, 1.0),
}
_SELF_TUNED = "balance"
"""A recipe with this parameter on divides its memory by itself while it runs."""
BEYOND_MODEL = frozenset({"eagerness", "entry"})
"""Parameters whose effect the models do not tell well enough to tune them."""


def axes_of(recipe: Recipe, situation: Situation) -> list[Axis]:
    """Return what can be tuned of a recipe; nothing if it tunes itself."""
    if recipe.parameters.get(_SELF_TUNED):
        return []
    found = [_AXES[name](situation, recipe) for name in recipe.parameters if name in _AXES]
    for axis in found:
        low, high = RANGES[axis.parameter]
        assert low <= axis.low < axis.high <= high, axis
    return found
