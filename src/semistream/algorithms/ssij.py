"""SSIJ, the semi-streaming index join.

Paper: Bornea, Deligiannakis, Kotidis, Vassalos: Semi-streamed index join for near-real time execution of ETL
transformations; as described in the X-HYBRIDJOIN and priority-queue papers. Input is collected (pending phase), probed
into cached blocks (online phase), and what is left is joined by reading blocks through the index until the stream
buffer is empty (join phase), without refilling it meanwhile. Utility counters decide which blocks stay cached, and
memory moves between cached blocks and the stream buffer.

Recipe: oldest first, blocks cached by utility with a moving share of memory, batchwise intake.

Deviations: there is no pending phase. How many tuples are collected before they are looked up changes neither reads nor
answers, because blocks change in join phases only; it would but let tuples wait on a slow stream. The join phase also
starts when the input pauses, so that no tuple waits for tuples that may never come. How memory moves is not said: after
every fourth join phase it goes on in the direction in which tuples per read went up; in joins with payload the split
stays as it is.
"""

from semistream.algorithms.shared_parameters import CACHE_SHARE
from semistream.engine.parameters import Number, Tuning, named
from semistream.engine.recipe import BlockCaching, Recipe
from semistream.engine.sizing.split import BlockSpace, MemoryShare, Split
from semistream.policies.phasing import Batchwise

BUFFER_FILL = Number(
    "buffer_fill",
    1.0,
    low=0.01,
    high=1,
    about="how full the stream buffer is, as a share, when the join phase starts",
    tuning=Tuning(0.05, 1.0),
)

SSIJ = Recipe(
    name="ssij",
    summary="collects tuples, probes cached blocks, then reads blocks until its buffer is empty",
    paper="Bornea, Deligiannakis, Kotidis, Vassalos: Semi-streamed index join for near-real time execution of ETL",
    intake=lambda setting: Batchwise(setting[BUFFER_FILL]),
    caching=BlockCaching(adapt=True),
    split=lambda values: Split(cache=BlockSpace(MemoryShare(values[CACHE_SHARE])), page_group_bytes=4),
    parameters=named(CACHE_SHARE.with_default(0.3), BUFFER_FILL),
    loads_by_key=False,
)
