"""Measures the service rate in real time, on a master table in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from semistream.core.errors import SemistreamError
from semistream.lab.measuring import rates
from semistream.lab.point import Point, Row
from semistream.store.contract import MasterStore
from semistream.store.master_table import MasterTable
from semistream.workload import Workload, ZipfKeys
from semistream.workload.repeated_keys import RepeatedKeys

_KEY_AND_OVERHEAD_BYTES = 20
_BATCH_ROWS = 1 << 16
_DRAWN_KEYS = 1 << 24
"""The stream is drawn before the clock starts, and begins again at its end."""


def run(point: Point, tables: Path) -> Row:
    """Measure a point on the table of its size, which `build_table` has made."""
    store, direct = _opened(tables / str(point.master_rows))
    keys = ZipfKeys(point.master_rows, point.exponent, seed=point.seed, ranks=point.ranks)
    stream = Workload(RepeatedKeys.of(keys.draw(_DRAWN_KEYS)))
    return {**rates.measured_row(point, store, stream), "direct": direct}


def build_table(rows: int, tables: Path, progress: Callable[[int], None] | None = None) -> None:
    """Make the master table of a size, if it is not there yet."""
    path = tables / str(rows)
    if _is_whole(path):
        return
    tables.mkdir(parents=True, exist_ok=True)
    MasterTable.build(
        _generated(rows),
        path,
        "key",
        page_bytes=rates.PAGE_BYTES,
        progress=None if progress is None else lambda _, done, __: progress(done),
    )


def _is_whole(path: Path) -> bool:
    """Say whether a table is there that no interrupted build has left behind."""
    try:
        MasterTable(path).open().close()
    except SemistreamError:
        return False
    return True


@lru_cache(maxsize=2)
def _opened(path: Path) -> tuple[MasterStore, bool]:
    """Return the table, read past the page cache if the file system can do that, and whether it can."""
    table = MasterTable(path)
    try:
        return table.open(direct=True), True
    except SemistreamError:
        return table.open(), False


def _generated(rows: int) -> Iterator[pa.RecordBatch]:
    width = rates.ROW_BYTES - _KEY_AND_OVERHEAD_BYTES
    noise = pa.py_buffer(np.random.default_rng(0).bytes(_BATCH_ROWS * width))
    for start in range(0, rows, _BATCH_ROWS):
        count = min(_BATCH_ROWS, rows - start)
        keys = pa.array(np.arange(start + 1, start + count + 1, dtype=np.int64))
        payload = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, [None, noise])
        yield pa.RecordBatch.from_pydict({"key": keys, "payload": payload})
