"""The parameters that several recipes have; others stand beside their recipe."""

from __future__ import annotations

from semistream.engine.parameters import Extent, Number, Tuning, Values, Whole
from semistream.engine.sizing.split import AS_SUITS, AsSuits, Bytes, MemoryShare, TupleSpace


def _largest_read(extent: Extent) -> float:
    """Return a quarter of the table, but no more than the engine lets a read take, and at least two pages."""
    return max(2 * extent.page_bytes, min(extent.memory_bytes / 16, extent.table_bytes / 4))


READ_BYTES = Whole(
    "read_bytes",
    0,
    low=0,
    high=1e12,
    about="about how many bytes one read brings; 0 for what suits the memory",
    is_bytes=True,
    tuning=Tuning(lambda extent: extent.page_bytes, _largest_read),
)

CACHE_SHARE = Number(
    "cache_share",
    0.1,
    low=0,
    high=0.9,
    about="share of the memory that caches master data",
    tuning=Tuning(0.002, 0.6, also=(0.0,), together="cache"),
)


def read_size(values: Values) -> Bytes | AsSuits:
    """Return how much a read should bring."""
    return Bytes(values[READ_BYTES]) if values[READ_BYTES] else AS_SUITS


def tuple_space(values: Values) -> TupleSpace:
    """Return the memory of a cache of master tuples."""
    return TupleSpace(MemoryShare(values[CACHE_SHARE]))
