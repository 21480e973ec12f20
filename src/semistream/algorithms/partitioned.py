"""Partitioned Join.

Paper: Chakraborty, Singh: A page group-based approach to support streaming updates over persistent data in an active
data warehouse; as described in the HYBRIDJOIN and priority-queue papers. A wait buffer has a slot for each page group
of the master table; a page group is read when its slot passes a threshold or the wait buffer is full. Page groups in
memory are probed by arriving tuples first. A switch chooses by the fill of the input buffer: while it holds few tuples,
each is looked up at once, as INLJ would.

Recipe: full slot, blocks cached by use, small steps of intake, one phase after the other.

Deviations: which slot is read when the wait buffer is full is not said: the fullest. Slots are looked at after as many
tuples as fill one have entered. All columns of a waiting tuple are kept, not its key alone. The switch is said to be
between INLJ and MESHJOIN. Beside the wait buffer there is no scan in a ring: the disk is asked only when a slot passes
its threshold or the wait buffer is full, and the wait buffer is what MESHJOIN has become in this join.

Warning: a tuple of a rarely used page group may wait without bound while input goes on; that is the algorithm's known
flaw, kept here so that it can be measured.
"""

from semistream.algorithms.shared_parameters import CACHE_SHARE
from semistream.engine.parameters import Number, Tuning, Whole, named
from semistream.engine.recipe import BlockCaching, Recipe, Setting
from semistream.engine.sizing.split import BlockSpace, MemoryShare, Split
from semistream.policies.page_choice import FullSlot
from semistream.policies.phasing import Refill

THRESHOLD = Number(
    "threshold",
    2.0,
    low=0,
    high=1e9,
    about="a slot is full at so many times the tuples that slots have on average when the wait buffer is full",
    tuning=Tuning(0.25, 8.0, together="cache"),
)
TRICKLE = Whole(
    "trickle", 2, low=0, high=1_000_000, about="while the input holds so few tuples, they are looked up at once"
)


def _threshold(setting: Setting) -> int:
    """Return the tuples at which a slot is full: a multiple of what a slot has on average when the buffer is full."""
    return max(2, round(setting[THRESHOLD] * setting.waiting_slots / setting.page_group_count))


PARTITIONED = Recipe(
    name="partitioned",
    summary="reads a page group when enough tuples wait for it; a tuple may wait without bound",
    paper="Chakraborty, Singh: A page group-based approach to support streaming updates over persistent data",
    page_choice=lambda setting: FullSlot(_threshold(setting), setting[TRICKLE]),
    intake=lambda setting: Refill(step=_threshold(setting)),
    caching=BlockCaching(),
    split=lambda values: Split(cache=BlockSpace(MemoryShare(values[CACHE_SHARE])), page_group_bytes=4),
    parameters=named(THRESHOLD, TRICKLE, CACHE_SHARE.with_default(0.05)),
    bounded_wait=False,
    loads_by_key=False,
)
