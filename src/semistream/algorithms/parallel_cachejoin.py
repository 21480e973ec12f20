"""P-CACHEJOIN and OP-CACHEJOIN.

Paper: Mehmood, Naeem: Optimising CACHEJOIN by parallelism. P-CACHEJOIN runs the stream phase and the disk phase side by
side, joined by an intermediate buffer of unmatched tuples; OP-CACHEJOIN adds a second disk buffer, one keyed by the
oldest tuple and one by the youngest, each filled by a loader thread while the other is probed.

Recipe: oldest first (P) or oldest and youngest (OP), tuple cache with a threshold, phases side by side.

Deviations: the disk phase stops only when the intermediate buffer and the waiting tuples are empty; read literally,
"when the buffer is empty" would strand tuples on a silent stream. The two buffers of OP-CACHEJOIN never hold the same
partition, so the tuples for which a buffer was loaded are still there when it is probed.
"""

from semistream.algorithms.cachejoin import CACHE_PARAMETERS, above_threshold, random_overwrite
from semistream.engine.recipe import Recipe, TupleCaching
from semistream.engine.sizing import Split
from semistream.policies.page_choice import OldestAndYoungest

_PAPER = "Mehmood, Naeem: Optimising CACHEJOIN by parallelism (P-CACHEJOIN, OP-CACHEJOIN)"
_PARAMETERS = {**CACHE_PARAMETERS, "handover_bytes": 2_000_000}

P_CACHEJOIN = Recipe(
    name="p-cachejoin",
    summary="CACHEJOIN with its two phases side by side",
    paper=_PAPER,
    caching=TupleCaching(above_threshold, random_overwrite),
    side_by_side=True,
    split=lambda parameters: Split(
        read_bytes=int(parameters["read_bytes"]),
        cache_share=parameters["cache_share"],
        handover_bytes=int(parameters["handover_bytes"]),
    ),
    parameters=_PARAMETERS,
)

OP_CACHEJOIN = Recipe(
    name="op-cachejoin",
    summary="P-CACHEJOIN with two disk buffers, one loaded while the other is probed",
    paper=_PAPER,
    page_choice=lambda _: OldestAndYoungest(),
    caching=TupleCaching(above_threshold, random_overwrite),
    side_by_side=True,
    split=lambda parameters: Split(
        read_bytes=int(parameters["read_bytes"]),
        buffers=2,
        cache_share=parameters["cache_share"],
        handover_bytes=int(parameters["handover_bytes"]),
        partition_bytes=8,
    ),
    parameters=_PARAMETERS,
)
