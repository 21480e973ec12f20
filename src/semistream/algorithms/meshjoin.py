"""MESHJOIN.

Paper: Polyzotis et al., Meshing streaming updates with persistent data in an active data warehouse; as described in the
HYBRIDJOIN paper. The master table is read round and round in sequence, without an index. The queue has as many equal
parts as the table has partitions; in each iteration one part enters and the oldest, which has met all of the table,
leaves.

Recipe: ring, equal parts, no cache, one phase after the other.

Deviations: a tuple waits in the list of its partition, which the sparse index tells; it leaves the join when that
partition passes, but its slot stays taken until its part has gone a full round, as in the paper. A key that is absent
also leaves then and not only at the end of its round. The number of parts is fixed, so the disk buffer grows with the
table: that is the dependency which R-MESHJOIN removes.
"""

from semistream.engine.recipe import Recipe
from semistream.engine.sizing import Split
from semistream.policies.page_choice import Ring
from semistream.policies.phasing import EqualParts

MESHJOIN = Recipe(
    name="meshjoin",
    summary="reads the whole master table round and round; every tuple meets all of it",
    paper="Polyzotis, Skiadopoulos, Vassiliadis, Simitsis, Frantzell: Meshing streaming updates with persistent data",
    page_choice=lambda _: Ring(),
    intake=lambda _: EqualParts(),
    split=lambda parameters: Split(table_share=1 / parameters["parts"]),
    parameters={"parts": 2400},
)
