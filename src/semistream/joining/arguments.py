"""Refuses arguments of the wrong type in one sentence, before anything stumbles over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real

from semistream.core.durations import parse_seconds
from semistream.core.errors import InvalidSettingError


def check_arguments(*, on: object, columns: object, replace: object, suffix: object, parameters: object) -> None:
    """Raise InvalidSettingError unless these arguments of a join have types that make sense."""
    if not on or (not isinstance(on, str) and not _are_names(on) and not _is_renaming(on)):
        raise InvalidSettingError(
            f"on is {_shown(on)}: give a column name, a list of them, or a mapping from stream to master columns."
        )
    if columns is not None and (isinstance(columns, str) or not _are_names(columns)):
        raise InvalidSettingError(f"columns is {_shown(columns)}: give a list of column names.")
    _check_named_once("on", on)
    _check_named_once("columns", columns)
    if replace is not None and not _is_renaming(replace):
        raise InvalidSettingError(f"replace is {_shown(replace)}: give a mapping from stream to master columns.")
    if suffix is not None and not isinstance(suffix, str):
        raise InvalidSettingError(f"suffix is {_shown(suffix)}: give a string.")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InvalidSettingError(
            f"parameters is {_shown(parameters)}: give a mapping from names to numbers, such as {{'cache_share': 0.5}}."
        )


def check_dead_letters(dead_letters: object) -> None:
    """Raise InvalidSettingError unless refused rows can be handed to this."""
    if dead_letters is not None and not callable(dead_letters):
        raise InvalidSettingError(
            f"dead_letters is {_shown(dead_letters)}: give a function that takes a record batch and the reason."
        )


def check_seed(seed: object) -> None:
    """Raise InvalidSettingError unless random numbers can start from this."""
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise InvalidSettingError(f"seed is {_shown(seed)}: give a whole number.")


def checked_seconds(name: str, value: object) -> float:
    """Return the seconds of a duration above 0, a number or a text; raises InvalidSettingError if it is none."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        seconds = parse_seconds(float(value) if is_number else str(value))  # type: ignore[arg-type]
    except InvalidSettingError:
        seconds = 0.0
    if not seconds:
        raise InvalidSettingError(
            f"{name} must be a duration above 0, such as 2.5 or '10 seconds', but is {_shown(value)}."
        )
    return seconds


def _check_named_once(argument: str, names: object) -> None:
    if isinstance(names, Iterable) and not isinstance(names, str | Mapping):
        seen: set[object] = set()
        for name in names:
            if name in seen:
                raise InvalidSettingError(f"{argument} names the column {name!r} twice: name each column once.")
            seen.add(name)


def _are_names(value: object) -> bool:
    if isinstance(value, bytes | Mapping) or not isinstance(value, Iterable) or iter(value) is value:
        return False
    return all(isinstance(name, str) for name in value)


def _is_renaming(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for pair in value.items() for name in pair)


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 and "\n" not in shown else f"of type {type(value).__name__}"
