"""The oracle: the whole master table in memory.

Not an algorithm of the family but its upper bound, and what the others are compared with: every tuple is answered on
arrival. It ignores the memory budget.

Recipe: pinned tuples, all of them; keys with several master rows are read when asked for.
"""

from semistream.engine.recipe import Recipe, TupleCaching
from semistream.engine.sizing.split import Split, WholeTable

ORACLE = Recipe(
    name="oracle",
    summary="the whole master table in memory: the upper bound, whatever the budget says",
    paper="none",
    caching=TupleCaching(),
    split=lambda _: Split(cache=WholeTable()),
    loads_by_key=False,
)
