"""What an algorithm is made of: a recipe names policies and sizes, and the one loop does the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from semistream.core.costs import CostProfile
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
    costs: CostProfile
    """What reads cost: on the wall clock those of a solid-state disk are assumed."""
    partition_bytes: float
    run_partitions: int
    cache_tuples: int

    def __getitem__(self, parameter: str) -> float:
        """Return a parameter of the algorithm."""
        return self.parameters[parameter]


RANGES: Mapping[str, tuple[float, float]] = {
    "absent": (0, 1),
    "age": (0, 1),
    "balance": (0, 1),
    "batch": (1, 1_000_000),
    "buffer_fill": (0.01, 1),
    "cache_share": (0, 0.9),
    "deadline": (0, 1e9),
    "decay": (0, 0.999),
    "eagerness": (0.01, 1000),
    "entry": (0.01, 1000),
    "gaps": (0, 1),
    "handover_bytes": (1_000, 1e12),
    "handover_share": (0, 0.1),
    "in_flight": (0, 64),
    "measured": (0, 1),
    "most_windows": (1, 100_000),
    "parts": (1, 1e12),
    "patience": (0.01, 4),
    "pinned_share": (0, 0.9),
    "position": (0, 1),
    "read_bytes": (0, 1e12),
    "runs_share": (0, 0.5),
    "share": (0.001, 1),
    "threads": (0, 2),
    "threshold": (0, 1e9),
    "trickle": (0, 1_000_000),
}
"""What values the parameters of the recipes may have."""


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
    keeps_order: bool = False
    """Can answer chunk by chunk, so that tuples leave in the order they came; then its page choice is not asked."""
    sorted_by_use: bool = False
    """Gains only if the master table is stored in order of use."""
