"""Rows enter a cache some time after they were asked for, because they must be read first."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.compile import kernel

NONE = -1


def no_late_entries(key_count: int, delay: int) -> tuple[Int64Array, Int32Array]:
    """Return a ring of what is being read, one place for each request of the delay, and how often each was asked for.

    A row that was asked for by request t enters before request t + 1 + delay. Requests in between are misses that share
    its read.
    """
    return np.full(delay + 1, NONE, dtype=np.int64), np.zeros(key_count, dtype=np.int32)


@kernel
def take_due(ring: Int64Array, asks: Int32Array, request: int) -> int:
    """Return the row that enters before this request, or -1."""
    place = request % ring.shape[0]
    key = ring[place]
    ring[place] = -1
    if key >= 0:
        asks[key] = 0
    return int(key)


@kernel
def note_miss(ring: Int64Array, asks: Int32Array, request: int, key: int) -> None:
    """Let a read begin, unless one is under way for this row."""
    if asks[key] == 0:
        ring[request % ring.shape[0]] = key
    asks[key] += 1
