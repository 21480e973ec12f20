"""What is said when memory is too small for a join."""

from __future__ import annotations

from collections.abc import Callable

from semistream.core.budget import format_bytes, format_bytes_up, parse_bytes
from semistream.core.errors import BudgetTooSmallError

_MEMORY_STEP = 1.05
_MAX_MEMORY = 2**50


def too_small(memory: int) -> BudgetTooSmallError:
    """Return the error that no join fits the memory, as long as nobody knows what would be enough."""
    return BudgetTooSmallError(f"{format_bytes(memory)} of memory is too little for this master table and algorithm.")


def memory_needed(fits: Callable[[int], bool], memory: int) -> int:
    """Return a memory above one that is too small that is enough, and little more than that, as people write it.

    Tried step by step: with more memory reads are larger, too, so that more may be too little where less was enough.
    """
    enough = parse_bytes(format_bytes_up(memory + 1))
    while not fits(enough) and enough < _MAX_MEMORY:
        enough = parse_bytes(format_bytes_up(enough * _MEMORY_STEP))
    return enough
