"""MESHJOIN.

Paper: Polyzotis et al., Meshing streaming updates with persistent data in an active data warehouse; as described in the
HYBRIDJOIN paper. The master table is read round and round in sequence, without an index. The queue has as many equal
parts as the table has page groups; in each iteration one part enters and the oldest, which has met all of the table,
leaves.

Recipe: ring, equal parts, no cache, one phase after the other.

Deviations: a tuple waits in the list of its page group, which the sparse index tells; it leaves the join when that
page group passes, but its slot stays taken until its part has gone a full round, as in the paper. A key that is absent
also leaves then and not only at the end of its round. The number of parts is fixed, so the disk buffer grows with the
table: that is the dependency which R-MESHJOIN removes.
"""

from semistream.engine.parameters import Extent, Tuning, Whole, named
from semistream.engine.recipe import Recipe
from semistream.engine.sizing.split import Split, TableShare
from semistream.policies.page_choice import Ring
from semistream.policies.phasing import EqualParts


def _pages(extent: Extent) -> float:
    return extent.table_bytes / extent.page_bytes


PARTS = Whole(
    "parts",
    2400,
    low=1,
    high=1e12,
    about="how many equal parts the table and the queue have; a read brings one",
    tuning=Tuning(lambda extent: min(20.0, _pages(extent)), lambda extent: max(40.0, _pages(extent))),
)

MESHJOIN = Recipe(
    name="meshjoin",
    summary="reads the whole master table round and round; every tuple meets all of it",
    paper="Polyzotis, Skiadopoulos, Vassiliadis, Simitsis, Frantzell: Meshing streaming updates with persistent data",
    page_choice=lambda _: Ring(),
    intake=lambda _: EqualParts(),
    split=lambda values: Split(TableShare(1 / values[PARTS])),
    parameters=named(PARTS),
    loads_by_key=False,
)
