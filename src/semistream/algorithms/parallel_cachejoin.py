"""P-CACHEJOIN and OP-CACHEJOIN.

Paper: Mehmood, Naeem: Optimising CACHEJOIN by parallelism. P-CACHEJOIN runs the stream phase and the disk phase side by
side, joined by an intermediate buffer of unmatched tuples; OP-CACHEJOIN adds a second disk buffer, one keyed by the
oldest tuple and one by the youngest, each filled by a loader thread while the other is probed.

Recipe: oldest first (P) or oldest and youngest (OP), tuple cache with a threshold, phases side by side.

Deviations: the disk phase stops only when the intermediate buffer and the waiting tuples are empty; read literally,
"when the buffer is empty" would strand tuples on a silent stream. The two buffers of OP-CACHEJOIN never hold the same
page group, so the tuples for which a buffer was loaded are still there when it is probed. On the model clock a buffer's
key is taken from the queue after the other buffer has been probed, so that runs are the same every time.
"""

from semistream.algorithms.cachejoin import CACHE_PARAMETERS, above_threshold, random_overwrite
from semistream.algorithms.shared_parameters import read_size, tuple_space
from semistream.engine.parameters import Tuning, Whole, named
from semistream.engine.recipe import Phases, Recipe, Running, TupleCaching
from semistream.engine.sizing.split import Bytes, Split
from semistream.policies.page_choice import OldestAndYoungest

_PAPER = "Mehmood, Naeem: Optimising CACHEJOIN by parallelism (P-CACHEJOIN, OP-CACHEJOIN)"
_MIN_TUNED_BYTES = 1280.0  # 64 stream tuples

HANDOVER_BYTES = Whole(
    "handover_bytes",
    2_000_000,
    low=1_000,
    high=1e12,
    about="bytes of the buffer between the two phases, at most a tenth of the memory",
    is_bytes=True,
    tuning=Tuning(_MIN_TUNED_BYTES, lambda extent: max(2 * _MIN_TUNED_BYTES, extent.memory_bytes / 10)),
)
_PARAMETERS = {**CACHE_PARAMETERS, **named(HANDOVER_BYTES)}

P_CACHEJOIN = Recipe(
    name="p-cachejoin",
    summary="CACHEJOIN with its two phases side by side",
    paper=_PAPER,
    caching=TupleCaching(above_threshold, random_overwrite),
    running=lambda _: Running(phases=Phases.SIDE_BY_SIDE),
    split=lambda values: Split(read_size(values), cache=tuple_space(values), handover=Bytes(values[HANDOVER_BYTES])),
    parameters=_PARAMETERS,
)

OP_CACHEJOIN = Recipe(
    name="op-cachejoin",
    summary="P-CACHEJOIN with two disk buffers, one loaded while the other is probed",
    paper=_PAPER,
    page_choice=lambda _: OldestAndYoungest(),
    caching=TupleCaching(above_threshold, random_overwrite),
    running=lambda _: Running(phases=Phases.SIDE_BY_SIDE),
    split=lambda values: Split(
        read_size(values),
        buffers=2,
        cache=tuple_space(values),
        handover=Bytes(values[HANDOVER_BYTES]),
        page_group_bytes=8,
    ),
    parameters=_PARAMETERS,
)
