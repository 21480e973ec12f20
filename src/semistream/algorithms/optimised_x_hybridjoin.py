"""Optimised X-HYBRIDJOIN.

Paper: Naeem, Dobbie, Weber: Optimised X-HYBRIDJOIN for near-real-time data warehousing. Two phases: each arriving tuple
first probes a hash table of the frequent part of the master table, hashed once before the start; a hit leaves at once
and is never stored. Misses wait, and the disk-probing phase is one step of HYBRIDJOIN.

Recipe: oldest first, pinned tuples probed on arrival, refill, one phase after the other.

Deviations: none beyond HYBRIDJOIN's.
"""

from semistream.engine.recipe import Recipe, TupleCaching
from semistream.engine.sizing import Split

OPTIMISED_X_HYBRIDJOIN = Recipe(
    name="optimised-x-hybridjoin",
    summary="arriving tuples probe the pinned, most used master tuples; only misses wait",
    paper="Naeem, Dobbie, Weber: Optimised X-HYBRIDJOIN for near-real-time data warehousing",
    caching=TupleCaching(),
    split=lambda parameters: Split(read_bytes=int(parameters["read_bytes"]), cache_share=parameters["cache_share"]),
    parameters={"read_bytes": 0, "cache_share": 0.1},
    sorted_by_use=True,
)
