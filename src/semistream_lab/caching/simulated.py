"""The caches that are simulated on recorded streams, by the names that results have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from semistream.core.arrays import Int64Array
from semistream_lab.caching.lru import lru_hits
from semistream_lab.caching.ours import frequent_lately_hits
from semistream_lab.caching.s3_fifo import s3_fifo_hits
from semistream_lab.caching.sieve import sieve_hits
from semistream_lab.caching.w_tinylfu import w_tinylfu_hits


class SimulatedCache(Protocol):
    """Counts the requests that a cache of single rows answers."""

    def __call__(self, keys: Int64Array, key_count: int, capacity: int, *, delay: int = 0, first: int = 0) -> int:
        """Return how many of the requests for `keys`, each from 0 to `key_count`, are answered from `first` on.

        A row enters `delay` requests after it was asked for, if it does; requests in between are misses.
        """


SIMULATED: Mapping[str, SimulatedCache] = {
    "lru": lru_hits,
    "sieve": sieve_hits,
    "s3_fifo": s3_fifo_hits,
    "w_tinylfu": w_tinylfu_hits,
    "demandjoin": frequent_lately_hits,
}
