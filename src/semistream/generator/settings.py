"""Checks of the settings that the generators are given."""

from __future__ import annotations

import math
from operator import index

from semistream.core.errors import InvalidSettingError


def whole_number(name: str, value: int, *, minimum: int) -> int:
    """Return `value` as an int of at least `minimum`, or raise InvalidSettingError."""
    try:
        number = index(value)
    except TypeError:
        number = minimum - 1
    if isinstance(value, bool) or number < minimum:
        raise InvalidSettingError(f"{name} must be a whole number of at least {minimum}, but {value!r} was given.")
    return number


def number_from(name: str, value: float, *, minimum: float) -> float:
    """Return `value` as a finite float of at least `minimum`, or raise InvalidSettingError."""
    number = _as_float(value)
    if not (math.isfinite(number) and number >= minimum):
        raise InvalidSettingError(f"{name} must be a number of at least {minimum:g}, but {value!r} was given.")
    return number


def positive_number(name: str, value: float) -> float:
    """Return `value` as a finite float above zero, or raise InvalidSettingError."""
    number = _as_float(value)
    if not (math.isfinite(number) and number > 0):
        raise InvalidSettingError(f"{name} must be a number above 0, but {value!r} was given.")
    return number


def share_of_one(name: str, value: float) -> float:
    """Return `value` as a float from 0 to 1, or raise InvalidSettingError."""
    number = _as_float(value)
    if not 0 <= number <= 1:
        raise InvalidSettingError(f"{name} must be a share from 0 to 1, but {value!r} was given.")
    return number


def one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`, or raise InvalidSettingError."""
    if value not in choices:
        known = " or ".join(repr(choice) for choice in choices)
        raise InvalidSettingError(f"{name} must be {known}, but {value!r} was given.")
    return value


def _as_float(value: float) -> float:
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return math.nan
