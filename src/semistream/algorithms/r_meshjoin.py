"""R-MESHJOIN, reduced MESHJOIN.

Paper: Naeem, Dobbie, Weber, Alam: R-MESHJOIN; as described in the papers on X-HYBRIDJOIN and OP-CACHEJOIN. MESHJOIN
with one more parameter, so that the disk buffer no longer depends on the size of the master table and memory can be
divided better. The access to the table is unchanged.

Recipe: ring, equal parts, no cache, one phase after the other, and a disk buffer of its own size.

Deviations: as MESHJOIN.
"""

from semistream.algorithms.shared_parameters import READ_BYTES, read_size
from semistream.engine.parameters import named
from semistream.engine.recipe import Recipe
from semistream.engine.sizing.split import Split
from semistream.policies.page_choice import Ring
from semistream.policies.phasing import EqualParts

R_MESHJOIN = Recipe(
    name="r-meshjoin",
    summary="MESHJOIN with a disk buffer that does not depend on the size of the master table",
    paper="Naeem, Dobbie, Weber, Alam: R-MESHJOIN for near-real-time data warehousing",
    page_choice=lambda _: Ring(),
    intake=lambda _: EqualParts(),
    split=lambda values: Split(read_size(values)),
    parameters=named(READ_BYTES.with_default(300_000)),
    loads_by_key=False,
)
