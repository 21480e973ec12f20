"""The slots of a room: which rows one task sees, whatever the number of cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from semistream.spark.room.names import SLOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

_SEED = 42
_BITS = 0xFFFFFFFF


def slot_of(keys: Sequence[str], slots: int) -> Column:
    """Return the slot of a row, by its key."""
    return F.pmod(F.hash(*(F.col(key) for key in keys)), F.lit(slots)).cast("int")


def one_slot_a_task(df: DataFrame, slots: int) -> DataFrame:
    """Return the DataFrame, shuffled so that a task has all rows of one slot and no others.

    Spark sends a row to the partition that the hash of an expression names, so the expression is a number whose hash
    names the partition of the slot. A number of partitions that is given is never changed by adaptive execution.
    """
    numbers = F.array(*(F.lit(number) for number in _numbers(slots)))
    return df.repartition(slots, F.element_at(numbers, F.col(SLOT) + F.lit(1)))


def _numbers(slots: int) -> list[int]:
    """Return for each slot the first number that Spark's hash sends to the partition of that slot."""
    found: dict[int, int] = {}
    number = 0
    while len(found) < slots:
        found.setdefault(_murmur3(number) % slots, number)
        number += 1
    return [found[slot] for slot in range(slots)]


def _murmur3(number: int) -> int:
    """Return the hash that Spark has for an integer; positive modulo of it is the partition."""
    mixed = (number & _BITS) * 0xCC9E2D51 & _BITS
    mixed = (mixed << 15 | mixed >> 17) & _BITS
    state = _SEED ^ (mixed * 0x1B873593 & _BITS)
    state = (state << 13 | state >> 19) & _BITS
    state = (state * 5 + 0xE6546B64) & _BITS
    state ^= 4
    state = (state ^ state >> 16) * 0x85EBCA6B & _BITS
    state = (state ^ state >> 13) * 0xC2B2AE35 & _BITS
    state ^= state >> 16
    return state - (1 << 32) if state >= 1 << 31 else state
