"""A division of memory in which nothing is left open."""

from __future__ import annotations

from dataclasses import dataclass, replace

from semistream.core.costs import CostProfile
from semistream.engine.sizing.buffer_shares import RunBuffers, handover_share_for, run_buffers_for
from semistream.engine.sizing.split import AsSuits, Bytes, Cache, MemoryShare, Runs, Split, TupleSpace

_PAGE_GROUP_SHARE = 0.25
"""Planning by less than this part of what comes in the latency of a request saves nothing; many lists cost time."""
_MAX_HANDOVER_SHARE = 10
"""The buffer between two phases takes one part in so many of the memory at most."""


@dataclass(frozen=True)
class SettledSplit:
    """A split, with what it leaves open set as suits the circumstances."""

    split: Split
    runs: RunBuffers | None
    """The buffers for reads of runs; None if reads bring single page groups."""
    handover_bytes: int


@dataclass(frozen=True)
class Circumstances:
    """What a division of memory depends on, beside the wishes of the recipe."""

    memory: int
    table_bytes: int
    accounting: str
    costs: CostProfile
    on_model_clock: bool
    side_by_side: bool
    has_rows: bool
    """Stream tuples have more columns than their key, and rows have their places for good."""


def settled(split: Split, at: Circumstances) -> SettledSplit:
    """Return the split with nothing left open."""
    runs = _run_buffers(split.read, at) if isinstance(split.read, Runs) else None
    handover_bytes = 0
    if at.side_by_side:
        handover_bytes = min(_handover_bytes(split.handover, runs, at), at.memory // _MAX_HANDOVER_SHARE)
    return SettledSplit(replace(split, cache=_cache(split.cache, at)), runs, handover_bytes)


def _run_buffers(wanted: Runs, at: Circumstances) -> RunBuffers:
    buffers = run_buffers_for(at.costs, at.memory, on_model_clock=at.on_model_clock, accounting=at.accounting)
    if isinstance(wanted.memory, MemoryShare):
        buffers = replace(buffers, share=wanted.memory.share)
    if at.on_model_clock:  # where small steps are free
        return buffers
    latency_bytes = at.costs.seek_seconds * at.costs.bytes_per_second
    return replace(buffers, min_page_group_bytes=latency_bytes * _PAGE_GROUP_SHARE)


def _handover_bytes(wanted: Bytes | MemoryShare | AsSuits, runs: RunBuffers | None, at: Circumstances) -> int:
    match wanted:
        case Bytes(count):
            return count
        case MemoryShare(share):
            return int(share * at.memory)
        case AsSuits():
            return int(handover_share_for(runs.share if runs else 0.0, at.memory, at.table_bytes) * at.memory)


def _cache(wanted: Cache, at: Circumstances) -> Cache:
    if not at.has_rows or not isinstance(wanted, TupleSpace):
        return wanted
    beside_rows = wanted if at.on_model_clock else replace(wanted, memory=wanted.memory_beside_rows or wanted.memory)
    return replace(beside_rows, table_if_it_fits=False)
