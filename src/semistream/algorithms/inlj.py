"""INLJ, the index nested loop join.

Paper: the HYBRIDJOIN paper (its rival). One stream tuple, one look-up, one output: nothing is amortised.

Recipe: one read of a single page for every tuple, no cache, one phase after the other.

Deviations: up to 32 tuples that have already arrived are looked up in one turn of the loop, still by one request each
and one after the other; only their output is held back until the last of them is done.
"""

from semistream.engine.parameters import Whole, named
from semistream.engine.recipe import Recipe
from semistream.engine.sizing.split import Bytes, Split
from semistream.policies.page_choice import EveryTuple
from semistream.policies.phasing import FewAtATime

BATCH = Whole("batch", 32, low=1, high=1_000_000, about="how many tuples are looked up in one turn of the loop")

INLJ = Recipe(
    name="inlj",
    summary="one index look-up for every stream tuple",
    paper="Ramakrishnan; as a rival in Naeem, Dobbie, Weber: HYBRIDJOIN for near-real-time data warehousing",
    page_choice=lambda _: EveryTuple(),
    intake=lambda setting: FewAtATime(setting[BATCH]),
    split=lambda _: Split(Bytes(1)),
    parameters=named(BATCH),
    loads_by_key=False,
)
