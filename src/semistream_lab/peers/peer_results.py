"""What was measured of a peer, as numbers for people and as flat objects."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median

from semistream.core.flat_json import Scalar
from semistream_lab.cost.machine import Machine
from semistream_lab.peers.contract import Peer, Turn
from semistream_lab.peers.data import Joined, Situation

BOUND = "identity"
OURS = "enrich"
OURS_WITHOUT_SPARK = "join"


@dataclass(frozen=True)
class PeerResult:
    """All turns of a peer taken together; None is unknown or does not apply."""

    peer: str
    summary: str
    on_spark: bool
    joins: bool
    master_rows: int
    batch_rows: int
    zipf: float
    page_bytes: int | None
    """Of the master table as semistream has it; None for what a build chooses."""
    memory_bytes: int | None
    """What the peer was told to keep to, for each worker or core; None if it cannot be limited."""
    turns: int
    batches: int
    rows_per_second: float
    """The rows of a batch by its median time."""
    median_ms: float
    p99_ms: float
    add_batch_ms: float | None
    bytes_read_a_batch: float | None
    cache_hit_rate: float | None
    peak_process_bytes: int | None
    """Of the largest Python worker, or of the peer's own process; with all its code."""
    checked_rows: int
    checksum: str

    @classmethod
    def of(cls, peer: Peer, situation: Situation, turns: Sequence[Turn], checked: Joined) -> PeerResult:
        """Return the result of all turns of a peer."""
        times = [time for turn in turns for time in turn.batch_ms]
        middle = float(median(times))
        peaks = [turn.peak_process_bytes for turn in turns if turn.peak_process_bytes is not None]
        return cls(
            peer=peer.name,
            summary=peer.summary,
            on_spark=peer.on_spark,
            joins=peer.joins,
            master_rows=situation.master_rows,
            batch_rows=situation.batch_rows,
            zipf=situation.zipf,
            page_bytes=situation.page_bytes,
            memory_bytes=situation.memory_bytes if peer.keeps_to_memory else None,
            turns=len(turns),
            batches=len(times),
            rows_per_second=situation.batch_rows * 1000 / middle,
            median_ms=middle,
            p99_ms=percentile(times, 0.99),
            add_batch_ms=_of_all(median, [time for turn in turns for time in turn.add_batch_ms]),
            bytes_read_a_batch=_of_all(fmean, [size for turn in turns for size in turn.bytes_read]),
            cache_hit_rate=_of_all(fmean, [share for turn in turns for share in turn.cache_hits]),
            peak_process_bytes=max(peaks, default=None),
            checked_rows=checked.rows,
            checksum=checked.checksum,
        )


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that is not below the given share of all values."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def ratio(result: PeerResult, results: Sequence[PeerResult], other: str) -> float | None:
    """Return how many times as long the batches of a peer take as those of another; None if that was not measured."""
    medians = [one.median_ms for one in results if one.peer == other]
    return result.median_ms / medians[0] if medians else None


def fastest_first(results: Sequence[PeerResult]) -> list[PeerResult]:
    """Return the results by the median time of their batches."""
    return sorted(results, key=lambda result: result.median_ms)


def rows(results: Sequence[PeerResult], machine: Machine, spark_version: str) -> list[dict[str, Scalar]]:
    """Return the results as flat objects, with the machine in each."""
    return [
        {
            **asdict(result),
            "times_of_identity": ratio(result, results, BOUND),
            "times_of_enrich": ratio(result, results, OURS),
            "spark": spark_version,
            **asdict(machine),
        }
        for result in results
    ]


def _of_all(fold: Callable[[Sequence[float]], float], values: Sequence[float]) -> float | None:
    return float(fold(values)) if values else None
