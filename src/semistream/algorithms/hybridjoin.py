"""HYBRIDJOIN.

Paper: Naeem, Dobbie, Weber: HYBRIDJOIN for near-real-time data warehousing. The oldest waiting key leads, through the
index, to a page group of the master table; all waiting tuples it answers leave, and as many new ones enter. Reading
never waits for the stream: without input it goes on until no tuple waits.

Recipe: oldest first, no cache, refill, one phase after the other.

Deviations: intake is what is available up to the free slots, where the pseudo-code takes all or nothing. A key that is
not in the master table leaves with its page group's read; the paper assumes a match and would read one page for ever.
"""

from semistream.algorithms.shared_parameters import READ_BYTES, read_size
from semistream.engine.parameters import named
from semistream.engine.recipe import Recipe
from semistream.engine.sizing.split import Split

HYBRIDJOIN = Recipe(
    name="hybridjoin",
    summary="reads the page group that the oldest waiting tuple needs",
    paper="Naeem, Dobbie, Weber: HYBRIDJOIN for near-real-time data warehousing",
    split=lambda values: Split(read_size(values)),
    parameters=named(READ_BYTES),
)
