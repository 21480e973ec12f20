"""Finds where a rising function meets a value."""

from __future__ import annotations

from collections.abc import Callable

_MAX_STEPS = 100


def where_rising_meets(
    function: Callable[[float], float], target: float, low: float, high: float, *, precision: float = 1e-8
) -> float:
    """Return x in [low, high] with function(x) = target, or the end that is nearest; about ten calls.

    False position, with the weight of an end that stays halved (the Illinois rule).
    """
    below, above = function(low) - target, function(high) - target
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
        difference = function(middle) - target
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
