"""The master table of a bench: generated in memory or in a file, or one that exists."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa

from semistream.cli.progress import Progress
from semistream.core.arrays import Int64Array
from semistream.core.errors import InvalidSettingError
from semistream.master_table import MasterTable
from semistream.store.contract import MasterStore
from semistream.store.memory import MemoryStore
from semistream.store.throttling import ThrottlingStore
from semistream_lab.cli.bench_plan import BenchPlan, ClockKind, StoreKind
from semistream_lab.cost.profile_files import find_profile

KEY = "key"
_BATCH_ROWS = 1 << 16
_KEY_AND_OVERHEAD_BYTES = 20
_PAGES_AT_ONCE = 512


def open_table(plan: BenchPlan, progress: Progress, cleanup: ExitStack) -> MasterStore:
    """Return the store of a bench; `cleanup` removes what was made for it."""
    store = cleanup.enter_context(_opened(plan, progress, cleanup))
    if plan.clock is ClockKind.WALL and plan.profile is not None:
        costs = find_profile(plan.profile)
        return ThrottlingStore(store, latency_seconds=costs.seek_seconds, bytes_per_second=costs.bytes_per_second)
    return store


def key_stride(plan: BenchPlan) -> int:
    """Return the distance of generated keys: absent ones lie in between."""
    return 2 if plan.absent else 1


def keys_of(store: MasterStore, progress: Progress) -> Int64Array:
    """Return all keys of a table in their order; reads the whole table and takes 8 bytes a row."""
    keys = np.empty(store.row_count, dtype=np.int64)
    done = 0
    for first in range(0, store.page_count, _PAGES_AT_ONCE):
        last = min(first + _PAGES_AT_ONCE, store.page_count) - 1
        codes = store.read(np.array([first]), np.array([last])).codes
        keys[done : done + len(codes)] = codes
        done += len(codes)
        progress.update("Reading the keys of the master table", done, store.row_count)
    return np.unique(keys)


def _opened(plan: BenchPlan, progress: Progress, cleanup: ExitStack) -> MasterStore:
    if plan.master is not None:
        return existing_table(plan.master, direct=plan.direct)
    if plan.store is StoreKind.FILE:
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="semistream-bench-")))
        table = MasterTable.build(
            _generated(plan, payload=True),
            folder / "master",
            KEY,
            page_bytes=plan.page_bytes,
            progress=lambda _, done, __: progress.update("Building the master table", done, plan.master_rows),
        )
        return table.open(direct=plan.direct)
    progress.update("Making the master table", 0, None)
    return MemoryStore(
        pa.Table.from_batches(_generated(plan, payload=plan.payload)),
        KEY,
        rows_per_page=max(1, plan.page_bytes // plan.row_bytes),
        row_bytes=plan.row_bytes,
    )


def existing_table(path: str, *, direct: bool) -> MasterStore:
    store = MasterTable(path).open(direct=direct)
    problem = ""
    if len(store.key) != 1 or not pa.types.is_integer(store.schema.field(store.key[0]).type):
        types = ", ".join(f"{name} {store.schema.field(name).type}" for name in store.key)
        problem = f"The key of the master table at {path} is {types}: give a table with a single integer key."
    elif not store.row_count:
        problem = f"The master table at {path} has no rows: give one with rows."
    if problem:
        store.close()
        raise InvalidSettingError(problem)
    return store


def _generated(plan: BenchPlan, *, payload: bool) -> Iterator[pa.RecordBatch]:
    """Yield rows of a key and, if wanted, a payload: 100 bytes of the papers' 120."""
    stride, width = key_stride(plan), plan.row_bytes - _KEY_AND_OVERHEAD_BYTES
    random = np.random.default_rng(plan.seed)
    noise = pa.py_buffer(random.bytes(_BATCH_ROWS * width)) if payload else None
    for start in range(0, plan.master_rows, _BATCH_ROWS):
        count = min(_BATCH_ROWS, plan.master_rows - start)
        columns = {KEY: pa.array(np.arange(start + 1, start + count + 1, dtype=np.int64) * stride)}
        if noise is not None:
            columns["payload"] = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, [None, noise])
        yield pa.RecordBatch.from_pydict(columns)
