"""The process in which semistream joins without Spark: takes its order as JSON and prints what came out as JSON."""

from __future__ import annotations

import json
import sys
import time
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semistream.core.stats import JoinStats
from semistream.joining import join
from semistream_lab.peers.data import PAYLOAD, STREAM_COLUMNS, Joined, Situation, stream_rows
from semistream_lab.peers.peer_memory import peaks_of

_WAITING_BYTES = 28  # the least that a waiting tuple of this stream takes
_FILLINGS = 4
"""How often as many rows pass as can wait at most: rows leave in bursts, and what is shorter than a few is noise."""


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Join a few batches to be checked, or those to be measured."""
    situation = Situation(**order["situation"])
    master = Path(order["master"])
    if order["checked"]:
        stream = stream_rows(situation, order["first_row"], order["checked"] * situation.batch_rows)
        rows = join(stream, master, on="key", how="left", memory=situation.memory_bytes).read_all()
        joined_rows = Joined.of(rows, (*STREAM_COLUMNS, *PAYLOAD))
        return {"rows": joined_rows.rows, "checksum": joined_rows.checksum}
    return _measured(situation, master, order["first_row"], order["dropped"], order["batches"])


@dataclass(frozen=True)
class _Point:
    """A moment of a join."""

    rows: int
    seconds: float
    stats: JoinStats


def _measured(situation: Situation, master: Path, first_row: int, dropped: int, batches: int) -> dict[str, Any]:
    """Join a stream that is long enough for waiting tuples to fill the memory before what is measured and after it."""
    max_waiting = situation.memory_bytes // _WAITING_BYTES
    begin = max_waiting + dropped * situation.batch_rows
    end = begin + max(batches * situation.batch_rows, _FILLINGS * max_waiting)
    stream = stream_rows(situation, first_row, end + max_waiting).to_batches(max_chunksize=situation.batch_rows)
    joined = join(stream, master, on="key", how="left", memory=situation.memory_bytes)
    before, rows_out = None, 0
    for batch in joined:
        rows_out += batch.num_rows
        if before is None and rows_out >= begin:
            before = _Point(rows_out, time.perf_counter(), copy(joined.stats))
        elif before is not None and rows_out >= end:
            break
    after = _Point(rows_out, time.perf_counter(), joined.stats)
    assert before is not None
    joined.close()
    rows, counted = after.rows - before.rows, after.stats.since(before.stats)
    return {
        "batch_ms": (after.seconds - before.seconds) * 1000 * situation.batch_rows / rows,
        "bytes_read": counted.bytes_read * situation.batch_rows / rows,
        "cache_hits": counted.cache_hits / max(1, counted.tuples_out),
        "peak_bytes": max(peaks_of(Path("/proc/self")), default=None),
    }


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
