"""What a cost model says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Prediction:
    """The steady state of one algorithm on a saturated stream, as a cost model sees it."""

    algorithm: str
    formula: Literal["corrected", "printed"]
    """Ours, or as the paper prints it."""
    service_rate: float  # μ
    """Stream tuples joined per second."""
    tuples_per_iteration: float  # w
    """Stream tuples joined for each read."""
    seconds_per_iteration: float  # c_loop
    cached_share: float  # p_N
    """The share of stream tuples that master data in memory answers."""
    waiting_slots: int  # h_S
    memory: Mapping[str, int] = field(default_factory=dict)
    """The bytes of each part of the join."""
    source: str = ""
    """Where the formula stands: paper and equation numbers, or the section of our derivation."""
