"""HYBRIDJOIN-L and CACHEJOIN-L.

Paper: Naeem, Weber, Dobbie, Lutteroth: Optimising queue-based semi-stream joins by introducing a queue of frequent
pages, which names the two. The look-up key is not the oldest but the one at a fixed position of the queue, about 30%
from the young end at a Zipf exponent of 1, where a tuple is more likely to be of a frequent page.

Recipe: position in the queue, with and without a tuple cache, refill, one phase after the other.

Deviations: the paper has no guard against starvation of tuples beyond the position. Here the oldest tuple is looked up
once four times the queue's capacity has entered after it.
"""

from semistream.algorithms.cachejoin import CACHE_PARAMETERS, above_threshold, random_overwrite
from semistream.algorithms.shared_parameters import READ_BYTES, read_size, tuple_space
from semistream.engine.parameters import Number, Tuning, named
from semistream.engine.recipe import Recipe, Setting, TupleCaching
from semistream.engine.sizing.split import Split
from semistream.policies.contract import PageChoice
from semistream.policies.page_choice import AtPosition

_PAPER = "Naeem, Weber, Dobbie, Lutteroth: on look-up positions, as described with the queue of frequent pages"
POSITION = Number(
    "position",
    0.3,
    low=0,
    high=1,
    about="where the tuple that is looked up stands in the queue: 0 is the youngest, 1 the oldest",
    tuning=Tuning(0.02, 0.98, even=True),
)
PATIENCE = Number(
    "patience",
    4.0,
    low=0.01,
    high=4,
    about="the oldest tuple goes first once so many times the queue's capacity has entered after it",
)


def _at_position(setting: Setting) -> PageChoice:
    return AtPosition(setting[POSITION], setting[PATIENCE])


HYBRIDJOIN_L = Recipe(
    name="hybridjoin-l",
    summary="HYBRIDJOIN that looks up the key at a fixed position of its queue",
    paper=_PAPER,
    page_choice=_at_position,
    split=lambda values: Split(read_size(values), positions=True),
    parameters=named(READ_BYTES, POSITION, PATIENCE),
)

CACHEJOIN_L = Recipe(
    name="cachejoin-l",
    summary="CACHEJOIN that looks up the key at a fixed position of its queue",
    paper=_PAPER,
    page_choice=_at_position,
    caching=TupleCaching(above_threshold, random_overwrite),
    split=lambda values: Split(read_size(values), cache=tuple_space(values), positions=True),
    parameters={**CACHE_PARAMETERS, **named(POSITION, PATIENCE)},
)
