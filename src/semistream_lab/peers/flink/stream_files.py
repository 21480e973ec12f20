"""The stream of Flink's peers: CSV files, one for each task, because Flink reads them without more jars."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv as pc

from semistream_lab.peers.data import Situation, stream_keys, stream_rows

_STRIPE_ROWS = 1000
_CHUNK_ROWS = 100_000


def write_stream(folder: Path, name: str, situation: Situation, first_row: int, rows: int) -> None:
    """Put rows of the stream into a folder, all at once, so that tasks side by side are near the same position."""
    # Flink does not look at names that begin with a dot.
    hidden = folder / f".{name}"
    hidden.mkdir()
    stream = stream_rows(situation, first_row, rows)
    tasks = np.arange(rows) // _STRIPE_ROWS % situation.cores
    for task in range(situation.cores):
        own = stream.take(np.flatnonzero(tasks == task))
        pc.write_csv(own, hidden / f"{task}.csv", pc.WriteOptions(include_header=False))
    hidden.replace(folder / name)


def rows_to_fill(situation: Situation, first_row: int, cached_rows: int, max_rows: int) -> int:
    """Return after how many rows of the stream so many different keys were seen, at most `most`.

    A cache that could hold nearly all master rows would wait for the rarest of them: nine tenths are enough.
    """
    wanted = min(cached_rows, situation.master_rows * 9 // 10)
    seen = np.zeros(situation.master_rows, dtype=np.bool_)
    for start in range(0, max_rows, _CHUNK_ROWS):
        seen[stream_keys(situation, np.arange(first_row + start, first_row + start + _CHUNK_ROWS))] = True
        if int(seen.sum()) >= wanted:
            return min(start + _CHUNK_ROWS, max_rows)
    return max_rows
