"""What an algorithm is made of: a recipe names policies and sizes, and the one loop does the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from semistream.engine.sizing import Split
from semistream.policies.contract import Admission, Intake, PageChoice, Replacement
from semistream.policies.page_choice import OldestWaiting
from semistream.policies.phasing import Refill


@dataclass(frozen=True)
class Setting:
    """What is known when the policies of a recipe are made."""

    partition_count: int
    waiting_slots: int
    row_count: int
    seed: int
    parameters: Mapping[str, float]

    def __getitem__(self, parameter: str) -> float:
        """Return a parameter of the algorithm."""
        return self.parameters[parameter]


@dataclass(frozen=True)
class TupleCaching:
    """Cache single master tuples; without admission the first rows of the table, for good."""

    admission: Callable[[Setting], Admission] | None = None
    replacement: Callable[[Setting], Replacement] | None = None


@dataclass(frozen=True)
class PagePinning:
    """Keep the first partitions of the table in memory, and match waiting tuples with them in each round."""


@dataclass(frozen=True)
class BlockCaching:
    """Keep the partitions that serve most; `adapt` moves memory between them and the waiting tuples."""

    adapt: bool = False


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
    side_by_side: bool = False
    split: Callable[[Mapping[str, float]], Split] = lambda _: Split()
    parameters: Mapping[str, float] = field(default_factory=dict)
    """The knobs of the algorithm and their defaults."""
    bounded_wait: bool = True
    """Every tuple leaves after a bounded number of arrivals."""
    sorted_by_use: bool = False
    """Gains only if the master table is stored in order of use."""
