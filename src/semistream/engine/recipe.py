"""What an algorithm is made of: a recipe names policies and sizes, and the one loop does the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from semistream.core.costs import CostProfile
from semistream.engine.parameters import Parameter, Parameters, Value, Values
from semistream.engine.sizing.split import Split
from semistream.policies.contract import Admission, Intake, PageChoice, Replacement
from semistream.policies.page_choice import OldestWaiting
from semistream.policies.phasing import Refill


@dataclass(frozen=True)
class Setting:
    """What is known when the policies of a recipe are made."""

    page_group_count: int
    waiting_slots: int
    row_count: int
    seed: int
    values: Values
    costs: CostProfile
    """What reads cost: on the wall clock those of a solid-state disk are assumed."""
    page_group_bytes: float
    run_page_groups: int
    cache_tuples: int

    def __getitem__(self, parameter: Parameter[Value]) -> Value:
        """Return the value of a parameter of the algorithm."""
        return self.values[parameter]


@dataclass(frozen=True)
class TupleCaching:
    """Cache single master tuples; without admission the first rows of the table, for good."""

    admission: Callable[[Setting], Admission] | None = None
    replacement: Callable[[Setting], Replacement] | None = None


@dataclass(frozen=True)
class PagePinning:
    """Keep the first page groups of the table in memory, and match waiting tuples with them in each round."""


@dataclass(frozen=True)
class BlockCaching:
    """Keep the page groups that serve most; `adapt` moves memory between them and the waiting tuples."""

    adapt: bool = False


class Phases(Enum):
    """When tuples enter and pages are read."""

    IN_TURN = auto()
    SIDE_BY_SIDE = auto()
    BY_CLOCK = auto()
    """Side by side on the model clock, whose operations cost what they would with a processor for each thread, and in
    turn in real time, where Python runs one thread at a time."""


@dataclass(frozen=True)
class Running:
    """What the loop does beside asking its policies."""

    phases: Phases = Phases.IN_TURN
    shares_probes: bool = False
    """Where phases run side by side: the disk phase may look for tuples in the cache, too."""
    in_flight: int = 1
    """How many requests for runs may be under way ahead of the join; 0 reads nothing ahead."""
    measures_reads: bool = False
    """In real time: the page choice learns what reads cost as they come."""
    balances: bool = False
    """Memory moves between cached and waiting tuples, in joins of bare keys."""
    keeps_pages: bool = False
    """Memory that moves may hold whole parts of the table, too."""
    remembers_absent: bool = True
    """Keys that are not in the master table are cached as well."""


@dataclass(frozen=True)
class Recipe:
    """One algorithm of the family."""

    name: str
    summary: str
    """One line: what sets it apart."""
    paper: str
    page_choice: Callable[[Setting], PageChoice] = lambda _: OldestWaiting()
    intake: Callable[[Setting], Intake] = lambda _: Refill()
    caching: TupleCaching | PagePinning | BlockCaching | None = None
    running: Callable[[Values], Running] = lambda _: Running()
    split: Callable[[Values], Split] = lambda _: Split()
    parameters: Parameters = field(default_factory=dict)
    """The knobs of the algorithm by name."""
    bounded_wait: bool = True
    """Every tuple leaves after a bounded number of arrivals."""
    in_order: frozenset[str] | None = None
    """Where it can answer chunk by chunk, so that tuples leave in the order they came and its page choice is not asked:
    the parameters that then have an effect."""
    loads_by_key: bool = True
    """Loads the part of the master table that the index gives for the key of a waiting tuple, so that a part may as
    well begin at that key."""
    sorted_by_use: bool = False
    """Gains only if the master table is stored in order of use."""
    tunes_itself: bool = False
    """Divides its memory by itself while it runs, so that nothing is left for a tuner."""

    def values(self, given: Mapping[str, float] | None = None) -> Values:
        """Return the values of its parameters in a join; raises an error if those given do not make sense."""
        return Values(self.name, self.parameters, given or {})

    @property
    def keeps_order(self) -> bool:
        """Whether tuples can leave in the order they came."""
        return self.in_order is not None

    @property
    def side_by_side(self) -> bool:
        """Whether its phases run side by side on every clock, unless parameters say otherwise."""
        return self.running(self.values()).phases is Phases.SIDE_BY_SIDE
