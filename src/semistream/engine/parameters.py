"""The parameters of recipes: kind, default, limits, what they mean and which values are worth a try.

Whatever asks about a parameter (the checks of what users give, the list on the command line, the tuner) asks here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Generic, Self, TypeVar, cast

from semistream.core.errors import InvalidSettingError

Value = TypeVar("Value", bound=float, covariant=True)


@dataclass(frozen=True)
class Extent:
    """How large the table and the memory are for which a parameter is tuned."""

    page_bytes: float
    table_bytes: float
    memory_bytes: float


Bound = float | Callable[[Extent], float]


@dataclass(frozen=True)
class Tuning:
    """Which values of a parameter are worth a try."""

    low: Bound
    high: Bound
    even: bool = False
    """Steps are even; otherwise each is the same multiple of the one before."""
    also: tuple[float, ...] = ()
    """Values beside the steps, such as 0 for none."""
    together: str = ""
    """Parameters with the same word here make up for each other, so they are varied together."""
    by_model: bool = True
    """Whether cost models tell its effect well enough to tune it by them."""

    def bounds(self, extent: Extent) -> tuple[float, float]:
        """Return the smallest and the largest value worth a try."""
        low, high = (bound(extent) if callable(bound) else bound for bound in (self.low, self.high))
        return low, high


@dataclass(frozen=True, kw_only=True)
class Parameter(ABC, Generic[Value]):
    """A knob of an algorithm; `Number`, `Whole` and `Flag` are its kinds."""

    name: str = field(kw_only=False)
    default: Value = field(kw_only=False)
    low: float
    high: float
    about: str
    """What it does, in one line."""
    is_bytes: bool = False
    tuning: Tuning | None = None
    """None if it is not tuned."""

    def with_default(self, default: Any) -> Self:
        """Return the same knob with another default."""
        return replace(self, default=self.checked(default))

    def checked(self, value: object) -> Value:
        """Return a value in the type of this kind, or raise an error that says what it may be."""
        number = float(value) if isinstance(value, Real) else math.nan
        if not self._is_of_kind(value, number) or not self.low <= number <= self.high:
            shown = repr(value) if math.isnan(number) or isinstance(value, bool) else f"{number:g}"
            raise InvalidSettingError(f"The parameter {self.name!r} must be {self.allowed}, but is {shown}.")
        return self._converted(number)

    @property
    def allowed(self) -> str:
        """What values it may have, in words."""
        return f"from {_plain(self.low)} to {_plain(self.high)}"

    @property
    def default_text(self) -> str:
        """The default as users write it."""
        return f"{self.default:g}"

    def _is_of_kind(self, value: object, number: float) -> bool:  # noqa: ARG002
        return not isinstance(value, bool)

    @abstractmethod
    def _converted(self, number: float) -> Value:
        """Return a number of this kind in its type."""


@dataclass(frozen=True, kw_only=True)
class Number(Parameter[float]):
    """Any number within the limits."""

    def _converted(self, number: float) -> float:
        return number


@dataclass(frozen=True, kw_only=True)
class Whole(Parameter[int]):
    """A whole number within the limits; 4.0 is one, too."""

    @property
    def allowed(self) -> str:
        """What values it may have, in words."""
        return f"a whole number from {_plain(self.low)} to {_plain(self.high)}"

    @property
    def default_text(self) -> str:
        """The default as users write it."""
        return str(self.default)

    def _is_of_kind(self, value: object, number: float) -> bool:
        return not isinstance(value, bool) and number.is_integer()

    def _converted(self, number: float) -> int:
        return int(number)


@dataclass(frozen=True, kw_only=True)
class Flag(Parameter[bool]):
    """Yes or no: True or False, or 1 or 0."""

    low: float = 0
    high: float = 1

    @property
    def allowed(self) -> str:
        """What values it may have, in words."""
        return "true or false"

    @property
    def default_text(self) -> str:
        """The default as users write it."""
        return str(self.default).lower()

    def _is_of_kind(self, value: object, number: float) -> bool:  # noqa: ARG002
        return number in (0, 1)

    def _converted(self, number: float) -> bool:
        return bool(number)


Parameters = Mapping[str, Parameter[float]]


def named(*parameters: Parameter[float]) -> Parameters:
    """Return parameters by their names."""
    return {parameter.name: parameter for parameter in parameters}


class Values:
    """What the parameters of a recipe are in one join: the values that were given, and the defaults of all others."""

    def __init__(self, recipe: str, parameters: Parameters, given: Mapping[str, float]) -> None:
        for name in given:
            if name not in parameters:
                known = ", ".join(parameters) or "none"
                raise InvalidSettingError(f"{recipe} has no parameter {name!r}: its parameters are {known}.")
        self._given = {name: parameters[name].checked(value) for name, value in given.items()}
        self._values = {**{name: parameter.default for name, parameter in parameters.items()}, **self._given}

    def __getitem__(self, parameter: Parameter[Value]) -> Value:
        """Return the value of a parameter, in the type of its kind."""
        return cast(Value, self._values[parameter.name])

    def is_given(self, parameter: Parameter[float]) -> bool:
        """Say whether a value was given; otherwise the default holds."""
        return parameter.name in self._given


def _plain(number: float) -> str:
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:g}"
