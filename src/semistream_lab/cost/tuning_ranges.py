"""What the tuner may try, as the parameters of a recipe say it for a table and a memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semistream.engine.parameters import Extent, Parameter, Tuning, Whole
from semistream.engine.recipe import Recipe
from semistream_lab.cost.situation import Situation


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
    together: str = ""
    by_model: bool = True

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


def axes_of(recipe: Recipe, situation: Situation) -> list[Axis]:
    """Return what can be tuned of a recipe, as its parameters say; nothing if it tunes itself."""
    if recipe.tunes_itself:
        return []
    page_bytes = situation.rows_per_page * situation.row_bytes
    extent = Extent(page_bytes, situation.master_rows * situation.row_bytes, situation.memory_bytes)
    return [
        _axis(parameter, parameter.tuning, extent)
        for parameter in recipe.parameters.values()
        if parameter.tuning is not None
    ]


def _axis(parameter: Parameter[float], tuning: Tuning, extent: Extent) -> Axis:
    low, high = tuning.bounds(extent)
    assert parameter.low <= low < high <= parameter.high, parameter
    return Axis(
        parameter.name,
        low,
        high,
        even=tuning.even,
        extra=tuning.also,
        whole=isinstance(parameter, Whole),
        together=tuning.together,
        by_model=tuning.by_model,
    )
