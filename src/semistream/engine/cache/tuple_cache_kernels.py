"""What a tuple cache does with many entries at a time; only compiled loops."""

from __future__ import annotations

from typing import Any

from semistream.core.arrays import BoolArray, Int32Array, Int64Array
from semistream.core.code_table import insert_code, remove_code
from semistream.core.compile import kernel


@kernel
def count_use(frequencies: Int32Array, absent: BoolArray, slots: Int64Array) -> int:
    """Count a use of each slot; return how many stand for absent keys."""
    count = 0
    for index in range(slots.shape[0]):
        frequencies[slots[index]] += 1
        count += absent[slots[index]]
    return count


@kernel
def count_unused(frequencies: Int32Array, before: Int32Array, count: int, least: float) -> tuple[int, int]:
    """Count the first entries that had been used at least so often before, and those of them not used since."""
    promising = unused = 0
    for slot in range(count):
        if before[slot] >= least:
            promising += 1
            unused += frequencies[slot] == before[slot]
    return promising, unused


@kernel
def vacate(
    table: Int64Array,
    table_slots: Int32Array,
    shift: int,
    cached: Int64Array,
    frequencies: Int32Array,
    victims: Int64Array,
    worth: Int32Array,
    overwritten: Int64Array,
) -> Any:
    """Take the codes of victims out of the table and list them, up to the first that newcomers are not worth more than.

    All of them if no worth is given. Returns how many.
    """
    for index in range(victims.shape[0]):
        slot = victims[index]
        if worth.shape[0] > 0 and frequencies[slot] >= worth[index]:
            return index
        overwritten[index] = cached[slot]
        remove_code(table, table_slots, shift, cached[slot])
    return victims.shape[0]


@kernel
def take_out(table: Int64Array, table_slots: Int32Array, shift: int, codes: Int64Array) -> None:
    """Take codes out of the table."""
    for index in range(codes.shape[0]):
        remove_code(table, table_slots, shift, codes[index])


@kernel
def put_elsewhere(
    table: Int64Array,
    table_slots: Int32Array,
    shift: int,
    cached: Int64Array,
    slots: Int64Array,
    targets: Int64Array,
) -> None:
    """Let the codes of some slots have others."""
    for index in range(slots.shape[0]):
        remove_code(table, table_slots, shift, cached[slots[index]])
        insert_code(table, table_slots, shift, cached[slots[index]], targets[index])


@kernel
def fill(
    table: Int64Array,
    table_slots: Int32Array,
    shift: int,
    cached: Int64Array,
    frequencies: Int32Array,
    frequencies_before: Int32Array,
    is_absent: BoolArray,
    slots: Int64Array,
    codes: Int64Array,
    worth: Int32Array,
    absent: bool,
) -> None:
    """Let codes have slots, one each."""
    for index in range(slots.shape[0]):
        slot = slots[index]
        insert_code(table, table_slots, shift, codes[index], slot)
        cached[slot] = codes[index]
        frequencies[slot] = worth[index]
        frequencies_before[slot] = worth[index]
        is_absent[slot] = absent
