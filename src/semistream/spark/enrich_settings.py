"""Checks what users give to `enrich`, one setting at a time."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from semistream.core.budget import format_bytes, parse_bytes
from semistream.core.errors import BudgetTooSmallError, InvalidSettingError, NameClashError
from semistream.core.local_paths import local_path_of
from semistream.engine.recipe import Recipe
from semistream.joining.ordered_session import check_keeps_order
from semistream.spark.dimension import Dimension
from semistream.spark.held_join import Order
from semistream.spark.pinning import Pin
from semistream.store.address import Address

_SMALLEST_MEMORY = 4_000_000
_MAX_HOT_KEYS = 100
_unnamed = itertools.count(1)


def checked_memory(memory: int | str) -> int:
    """Return the bytes of a worker's memory."""
    memory_bytes = parse_bytes(memory)
    if memory_bytes < _SMALLEST_MEMORY:
        raise BudgetTooSmallError(
            f"{format_bytes(memory_bytes)} of memory is too little for a Spark worker: "
            f"give at least {format_bytes(_SMALLEST_MEMORY)}."
        )
    return memory_bytes


def checked_hot_keys(count: int) -> int:
    """Return how many frequent keys are told."""
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= _MAX_HOT_KEYS:
        raise InvalidSettingError(f"hot_keys is {count!r}: give a whole number from 0 to {_MAX_HOT_KEYS}.")
    return count


def checked_order(order: str | None, recipe: Recipe, parameters: Mapping[str, float] | None) -> Order:
    """Return the order of rows, by default what the algorithm can do."""
    if order is None:
        order = "input" if recipe.keeps_order else "any"
    if order == "input":
        check_keeps_order(recipe, parameters)
        return "input"
    if order != "any":
        raise InvalidSettingError(f"{order!r} is not an order of rows: choose 'any' or 'input'.")
    return "any"


def checked_pin(pin: tuple[str, int] | Literal[False] | None, version: int | None) -> Pin:
    """Return how tasks find their version."""
    if pin is None:
        return Pin(version)
    if pin is False:
        return Pin(version, wanted=False)
    if not (isinstance(pin, tuple) and len(pin) == 2 and isinstance(pin[0], str) and _is_batch(pin[1])):
        raise InvalidSettingError(f"{pin!r} is not a valid pin: give the query's name and the batch number.")
    return Pin(version, *pin)


def checked_folder(place: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder of dead letters."""
    if place is not None and not isinstance(place, str | os.PathLike):
        raise InvalidSettingError(f"dead_letters is of type {type(place).__name__}: give the path of a folder.")
    return None if place is None else Path(os.path.abspath(local_path_of(place, "Dead letters")))  # noqa: PTH100


def operator_name(name: str | None, table: str) -> str:
    """Return the name of an operator, by default that of its table and a number."""
    if name is None:
        return f"{table}-{next(_unnamed)}"
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]{1,100}", name):
        raise InvalidSettingError(f"{name!r} cannot name an operator: use letters, digits, '.', '_' and '-'.")
    return name


def dimension_names(dimensions: Sequence[Dimension], tables: Sequence[Address]) -> list[str]:
    """Return what statistics and folders call each dimension; those without a name are told apart by numbers."""
    names: list[str] = []
    for place, (dimension, table) in enumerate(zip(dimensions, tables, strict=True), start=1):
        if dimension.name is None:
            name = re.sub(r"[^\w.-]", "_", table.name)[:90]
            name = name if name not in names else f"{name}-{place}"
        else:
            name = operator_name(dimension.name, "")
        if name in names:
            raise NameClashError(f"Two dimensions are called {name!r}: give each a `name` of its own.")
        names.append(name)
    return names


def checked_dimensions(master: object, given: Mapping[str, object]) -> list[Dimension]:
    """Return the dimensions of a star, if nothing is `given` that belongs to each of them or to a single table."""
    named = list(master) if isinstance(master, list | tuple) else [master]
    dimensions = [dimension for dimension in named if isinstance(dimension, Dimension)]
    if not dimensions or len(dimensions) < len(named):
        raise InvalidSettingError("A list of master tables has to be a list of ss.Dimension, each with its `on`.")
    for name in ("on", "columns", "replace", "suffix", "matched", "unmatched"):
        if given[name] is not None:
            raise InvalidSettingError(f"With a list of dimensions `{name}` belongs to each of them: give it there.")
    if given["room"] is not None or given["max_wait"] is not None:
        raise InvalidSettingError(
            "Rows cannot wait in a room where several dimensions are joined at once: call enrich once for each "
            "dimension."
        )
    for dimension in dimensions:
        if dimension.unmatched == "park":
            raise InvalidSettingError(
                "Rows cannot be parked where several dimensions are joined at once: call enrich once for each "
                "dimension, with a `room` for this one."
            )
    return dimensions


def check_star_order(order: Order, recipe: Recipe) -> None:
    """Raise an error unless rows keep their order, in which alone they can go from dimension to dimension."""
    if order != "input":
        raise InvalidSettingError(
            f"Several dimensions are joined at once only in the order of the input, and here {recipe.name} has order "
            f"'any': leave `algorithm` and `order` out, or call enrich once for each dimension."
        )


def _is_batch(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0
