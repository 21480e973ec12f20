"""HYBRIDJOIN-L and CACHEJOIN-L.

Paper: Naeem, Weber, Dobbie, Lutteroth: Optimising queue-based semi-stream joins by introducing a queue of frequent
pages, which names the two. The look-up key is not the oldest but the one at a fixed position of the queue, about 30%
from the young end at a Zipf exponent of 1, where a tuple is more likely to be of a frequent page.

Recipe: position in the queue, with and without a tuple cache, refill, one phase after the other.

Deviations: the paper has no guard against starvation of tuples beyond the position. Here the oldest tuple is looked up
once four times the queue's capacity has entered after it.
"""

from semistream.algorithms.cachejoin import CACHE_PARAMETERS, above_threshold, random_overwrite
from semistream.engine.recipe import Recipe, Setting, TupleCaching
from semistream.engine.sizing import Split
from semistream.policies.contract import PageChoice
from semistream.policies.page_choice import AtPosition

_PAPER = "Naeem, Weber, Dobbie, Lutteroth: on look-up positions, as described with the queue of frequent pages"
_POSITION = {"position": 0.3, "patience": 4.0}


def _at_position(setting: Setting) -> PageChoice:
    return AtPosition(setting["position"], setting["patience"])


HYBRIDJOIN_L = Recipe(
    name="hybridjoin-l",
    summary="HYBRIDJOIN that looks up the key at a fixed position of its queue",
    paper=_PAPER,
    page_choice=_at_position,
    split=lambda parameters: Split(read_bytes=int(parameters["read_bytes"]), positions=True),
    parameters={"read_bytes": 0, **_POSITION},
)

CACHEJOIN_L = Recipe(
    name="cachejoin-l",
    summary="CACHEJOIN that looks up the key at a fixed position of its queue",
    paper=_PAPER,
    page_choice=_at_position,
    caching=TupleCaching(above_threshold, random_overwrite),
    split=lambda parameters: Split(
        read_bytes=int(parameters["read_bytes"]), cache_share=parameters["cache_share"], positions=True
    ),
    parameters={**CACHE_PARAMETERS, **_POSITION},
)
