"""Which shares of the memory suit the buffers of reads and of tuples between two phases."""

from __future__ import annotations

from dataclasses import dataclass

from semistream.core.costs import CostProfile

_MIN_RUNS_SHARE, _MAX_RUNS_SHARE = 0.005, 0.09
_MIN_HANDOVER_SHARE, _MAX_HANDOVER_SHARE = 0.005, 0.02
_MAX_OF_THREE_SHARE = 0.03
_ROUND_SECONDS, _PAPERS_ROUND_SECONDS = 250e-6, 75e-6


@dataclass(frozen=True)
class RunBuffers:
    """The buffers for reads of runs."""

    share: float
    """Which share of the memory each has."""
    reads_ahead: int
    """How many reads are under way while the pages of another are joined."""
    min_page_group_bytes: float = 0.0
    """Page groups are about so large at least, unless the table would have few of them."""


def run_buffers_for(costs: CostProfile, memory: int, *, on_model_clock: bool, accounting: str = "real") -> RunBuffers:
    """Return which buffers suit reads of runs.

    The next read is asked for while the last one is on its way, so a read of twice the bytes that come in the latency
    of a request hides most of that. More would only take memory from waiting tuples. In real time a round of the loop
    takes its time whatever it reads, which counts like latency, and two reads are under way while a third is joined. By
    the bytes we allocate there are four buffers then, as the output may still need one; as the papers count there are
    three, which have less of the memory each, because fewer tuples can wait in it.
    """
    if on_model_clock:
        return RunBuffers(_wanted_share(costs, 0.0, memory, _MAX_RUNS_SHARE), 1)
    if accounting != "papers":
        return RunBuffers(_wanted_share(costs, _ROUND_SECONDS, memory, min(0.04, max(0.015, 0.75e-9 * memory))), 2)
    return RunBuffers(_wanted_share(costs, _PAPERS_ROUND_SECONDS, memory, _MAX_OF_THREE_SHARE), 2)


def _wanted_share(costs: CostProfile, round_seconds: float, memory: int, max_share: float) -> float:
    latency_bytes = (costs.seek_seconds + round_seconds) * costs.bytes_per_second
    return float(min(max_share, max(_MIN_RUNS_SHARE, 2 * latency_bytes / memory)))


def handover_share_for(runs_share: float, memory: int, table_bytes: int) -> float:
    """Return which share of the memory the buffer between two phases should have, where reads bring runs.

    While the disk phase joins one read, the stream phase must have room for what the next one lets in: that is twice
    the part of the waiting tuples that a read is of the table, and a tuple takes several times less room there than in
    the queue.
    """
    wanted = 0.5 * runs_share * memory / max(1, table_bytes)
    return min(_MAX_HANDOVER_SHARE, max(_MIN_HANDOVER_SHARE, wanted))
