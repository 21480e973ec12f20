"""The process in which a library joins in memory: takes its order as JSON and prints what came out as JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from semistream_lab.peers.data import PAYLOAD, STREAM_COLUMNS, Joined, Situation, stream_rows
from semistream_lab.peers.hash_joins import HASH_JOINS
from semistream_lab.peers.peer_memory import peaks_of


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Load the master table, join a few batches to be checked and then those to be measured."""
    situation = Situation(**order["situation"])
    join = HASH_JOINS[order["library"]]()
    join.load(Path(order["parquet"]), situation.cores)
    checked: dict[str, Any] = {}
    if order["checked"]:
        rows = stream_rows(situation, order["first_row"], order["checked"] * situation.batch_rows)
        joined = Joined.of(join.joined(rows), (*STREAM_COLUMNS, *PAYLOAD))
        checked |= {"rows": joined.rows, "checksum": joined.checksum}
    times = []
    for batch in range(order["dropped"] + order["batches"]):
        start = order["first_row"] + batch * situation.batch_rows
        rows = stream_rows(situation, start, situation.batch_rows)
        before = time.perf_counter()
        join.joined(rows)
        times.append((time.perf_counter() - before) * 1000)
    peak_bytes = max(peaks_of(Path("/proc/self")), default=None)
    return {**checked, "batch_ms": times[order["dropped"] :], "peak_bytes": peak_bytes}


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
