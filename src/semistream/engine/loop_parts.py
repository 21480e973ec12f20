"""What a loop is made of."""

from __future__ import annotations

from dataclasses import dataclass

from semistream.core.clock import Clock
from semistream.core.measured_costs import MeasuredCosts
from semistream.core.stats import JoinStats
from semistream.engine.cache.balance import MemoryBalance
from semistream.engine.cache.cache_stage import CacheStage
from semistream.engine.output.output import Output
from semistream.engine.reading.group_reader import PageGroupReader
from semistream.engine.rows.stream_rows import StreamRows
from semistream.engine.waiting.waiting_tuples import WaitingTuples
from semistream.policies.contract import Intake, PageChoice


@dataclass(frozen=True, kw_only=True)
class LoopParts:
    """The parts of a loop but for its input; loops that run one after the other share them."""

    waiting: WaitingTuples
    reader: PageGroupReader
    choice: PageChoice
    intake: Intake
    cache: CacheStage | None
    clock: Clock
    stats: JoinStats
    output: Output | None
    """Where output rows appear; None where matches of bare keys are only counted."""
    stream_rows: StreamRows | None
    """The rows of the tuples that are inside; None where tuples are bare keys."""
    balance: MemoryBalance | None
    finish_bytes: int
    """How much may be read at a time for what still waits at the end of the input; 0 leaves that to the page choice."""
    run_bytes: int
    """What a read of runs may transfer; 0 sets no limit."""
    in_flight: int
    """How many requests for runs may be under way ahead of the join."""
    reads_ahead: int
    """How many reads of runs may be under way ahead of the join."""
    read_costs: MeasuredCosts | None
    """What reads cost, where that is measured."""
