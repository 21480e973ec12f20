"""Finds where a rising function meets a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, cast

from numba import njit

Parameters = TypeVar("Parameters")
_Parameters = TypeVar("_Parameters", contravariant=True)
_MAX_STEPS = 100


class RisingRoot(Protocol[_Parameters]):
    """Returns x in [low, high] with function(x, parameters) = target, or the end that is nearest."""

    def __call__(
        self, parameters: _Parameters, target: float, low: float, high: float, precision: float = 1e-8
    ) -> float: ...


def rising_root(function: Callable[[float, Parameters], float]) -> RisingRoot[Parameters]:
    """Return a compiled search for the place where a rising kernel meets a value; about ten calls of the kernel.

    Call it from a kernel: it is compiled into that, and not kept on disk by itself.
    """

    # False position, with the weight of an end that stays halved (the Illinois rule).
    def where_it_meets(
        parameters: Parameters, target: float, low: float, high: float, precision: float = 1e-8
    ) -> float:
        below, above = function(low, parameters) - target, function(high, parameters) - target
        if below >= 0:
            return low
        if above <= 0:
            return high
        kept = 0
        middle = low
        for step in range(_MAX_STEPS):
            middle = (low * above - high * below) / (above - below)
            if step % 4 == 3 or not low < middle < high:  # bends of the function must not stall the search
                middle = (low + high) / 2
            difference = function(middle, parameters) - target
            if difference < 0:
                low, below = middle, difference
                above = above / 2 if kept < 0 else above
                kept = -1
            else:
                high, above = middle, difference
                below = below / 2 if kept > 0 else below
                kept = 1
            if high - low <= precision * high or abs(difference) <= precision * abs(target):
                break
        return middle

    return cast(RisingRoot[Parameters], njit(nogil=True)(where_it_meets))
