"""What each part of a join may hold."""

from __future__ import annotations

from dataclasses import dataclass

ROW_SHARE = 8
"""A single row or page may take one part in so many of the memory; what is larger goes to the dead letters."""


@dataclass(frozen=True)
class Sizes:
    """What each part of a join may hold."""

    pages_per_read: int
    waiting_slots: int  # h_S
    cache_tuples: int  # h_R
    cache_blocks: int
    """Page groups that the cache may hold."""
    cache_bytes: int
    """What the cache may hold in all."""
    cache_variable_bytes: int
    """Bytes for the columns without a fixed width of cached tuples."""
    handover_slots: int  # i_B
    variable_bytes: int
    """Bytes for the columns without a fixed width of waiting stream tuples."""
    output_bytes: int
    output_slots: int
    """How many tuples that have been answered may still hold their slots."""
    chunk_rows: int
    """How many stream tuples should come at once, at most."""
    run_page_groups: int = 1
    """How many page groups a read may bring, where it brings runs of them."""
    run_bytes: int = 0
    """What a read of runs may transfer, if it is more than one page group."""
    slots_per_block: int = 0
    """How many waiting tuples take as much memory as one cached page group."""
    waiting_bytes: float = 0.0
    """What a waiting tuple takes."""
    holds_table: bool = False
    """The cache has room for every master tuple, and none need ever leave it."""
    kept_page_group_bytes: float = 0.0
    """What a page group takes that is kept as a whole, in joins of bare keys."""
    cached_bytes: float = 0.0
    """What a cached tuple takes, with all that policies need for it."""
