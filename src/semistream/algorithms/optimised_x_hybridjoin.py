"""Optimised X-HYBRIDJOIN.

Paper: Naeem, Dobbie, Weber: Optimised X-HYBRIDJOIN for near-real-time data warehousing. Two phases: each arriving tuple
first probes a hash table of the frequent part of the master table, hashed once before the start; a hit leaves at once
and is never stored. Misses wait, and the disk-probing phase is one step of HYBRIDJOIN.

Recipe: oldest first, pinned tuples probed on arrival, refill, one phase after the other.

Deviations: none beyond HYBRIDJOIN's.
"""

from semistream.algorithms.shared_parameters import CACHE_SHARE, READ_BYTES, read_size, tuple_space
from semistream.engine.parameters import named
from semistream.engine.recipe import Recipe, TupleCaching
from semistream.engine.sizing.split import Split

OPTIMISED_X_HYBRIDJOIN = Recipe(
    name="optimised-x-hybridjoin",
    summary="arriving tuples probe the pinned, most used master tuples; only misses wait",
    paper="Naeem, Dobbie, Weber: Optimised X-HYBRIDJOIN for near-real-time data warehousing",
    caching=TupleCaching(),
    split=lambda values: Split(read_size(values), cache=tuple_space(values)),
    parameters=named(READ_BYTES, CACHE_SHARE),
    sorted_by_use=True,
)
