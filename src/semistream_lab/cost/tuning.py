"""What tuning finds: the best parameters, and the points that were tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class CurvePoint:
    """One choice of parameters and the service rate that it gives."""

    parameters: Mapping[str, float]
    service_rate: float


@dataclass(frozen=True)
class Tuning:
    """The best parameters of an algorithm in a situation."""

    algorithm: str
    parameters: Mapping[str, float]
    """The parameters that were tuned; the others keep their defaults."""
    service_rate: float
    curve: tuple[CurvePoint, ...]
    """All points that were tried, in the order of trial."""
    by: Literal["model", "measurement"]
    note: str = ""
    """A sentence if there is something to know, such as that the algorithm has nothing to tune."""

    def along(self, parameter: str) -> tuple[CurvePoint, ...]:
        """Return the points that differ from the best in one parameter at most, in the order of that parameter."""
        others = {name: value for name, value in self.parameters.items() if name != parameter}
        best = {
            point.parameters[parameter]: point
            for point in self.curve
            if parameter in point.parameters
            and all(point.parameters.get(name, value) == value for name, value in others.items())
        }
        return tuple(best[value] for value in sorted(best))
