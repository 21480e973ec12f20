"""Which shares of the memory suit the buffers of reads and of tuples between two phases."""

from __future__ import annotations

from semistream.core.costs import CostProfile

_LEAST_RUNS_SHARE, _MOST_RUNS_SHARE = 0.005, 0.09
_LEAST_HANDOVER_SHARE, _MOST_HANDOVER_SHARE = 0.005, 0.02
_MOST_PAPERS_RUNS_SHARE = 0.065
_ROUND_SECONDS, _PAPERS_ROUND_SECONDS = 250e-6, 600e-6


def runs_share_for(costs: CostProfile, memory: int, *, on_model_clock: bool, accounting: str = "real") -> float:
    """Return which share of the memory each buffer for reads of runs should have.

    The next read is asked for while the last one is on its way, so a read of twice the bytes that come in the latency
    of a request hides most of that. More would only take memory from waiting tuples. In real time a round of the loop
    takes its time whatever it reads, which counts like latency. By the bytes we allocate there are four buffers, and
    little memory has other uses before them; as the papers count there are three, and so few tuples wait for what a
    read brings that it pays to bring more.
    """
    if on_model_clock:
        round_seconds, most = 0.0, _MOST_RUNS_SHARE
    elif accounting == "papers":
        round_seconds, most = _PAPERS_ROUND_SECONDS, _MOST_PAPERS_RUNS_SHARE
    else:
        round_seconds, most = _ROUND_SECONDS, min(0.04, max(0.015, 0.75e-9 * memory))
    latency_bytes = (costs.seek_seconds + round_seconds) * costs.bytes_per_second
    return float(min(most, max(_LEAST_RUNS_SHARE, 2 * latency_bytes / memory)))


def handover_share_for(runs_share: float, memory: int, table_bytes: int) -> float:
    """Return which share of the memory the buffer between two phases should have, where reads bring runs.

    While the disk phase joins one read, the stream phase must have room for what the next one lets in: that is twice
    the part of the waiting tuples that a read is of the table, and a tuple takes several times less room there than in
    the queue.
    """
    wanted = 0.5 * runs_share * memory / max(1, table_bytes)
    return min(_MOST_HANDOVER_SHARE, max(_LEAST_HANDOVER_SHARE, wanted))
