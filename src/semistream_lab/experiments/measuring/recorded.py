"""Measures the service rate on data that was not drawn by Zipf's law: TPC-H orders, and cloud reports."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.errors import InvalidSettingError
from semistream.generator import Workload
from semistream.store.memory import MemoryStore
from semistream_lab.experiments.measuring import rates
from semistream_lab.experiments.point import Point, Row
from semistream_lab.workload.repeated_keys import RepeatedKeys


@dataclass(frozen=True)
class Recorded:
    """The keys of a master table and of the stream that asks for them."""

    master_keys: Int64Array
    stream_keys: Int64Array


@dataclass(frozen=True)
class Source:
    """A kind of data and its size in the paper."""

    load: Callable[[float], Recorded]
    """Returns so large a part of the paper's data."""
    paper_rows: int
    row_bytes: int


def run(point: Point) -> Row:
    """Measure a point; its memory stands to its table as the paper's did to the paper's table.

    The table has the option `part` of the rows that the point names, and the memory is smaller by as much.
    """
    if point.data not in SOURCES:
        raise InvalidSettingError(f"There is no data {point.data!r}: choose from {', '.join(SOURCES)}.")
    source = SOURCES[point.data]
    part = point.option("part", 0.01) * point.master_rows / source.paper_rows
    store, keys = _table(point.data, part)
    memory = point.memory_bytes / (point.master_rows * source.row_bytes) * (store.row_count * source.row_bytes)
    smaller = replace(point, memory_bytes=round(memory), master_rows=store.row_count)
    row = rates.measured_row(smaller, store, Workload(RepeatedKeys.of(keys)))
    return {**row, "used_master_rows": store.row_count, "used_memory_bytes": round(memory)}


@lru_cache(maxsize=2)
def _table(name: str, part: float) -> tuple[MemoryStore, Int64Array]:
    source = SOURCES[name]
    data = source.load(part)
    rows = pa.table({"key": np.sort(data.master_keys)})
    rows_per_page = max(1, rates.PAGE_BYTES // source.row_bytes)
    store = MemoryStore(rows, "key", rows_per_page=rows_per_page, row_bytes=source.row_bytes, on_duplicate="all")
    return store, data.stream_keys


def _tpch(part: float) -> Recorded:
    from semistream_lab.workload import tpch

    scale = max(0.01, round(part * _TPCH_ROWS / _TPCH_ROWS_AT_SCALE_1, 3))
    files = tpch.generate(_folder(), scale)
    customers = files.customers().read_all().column(tpch.CUSTOMER_KEY)
    orders = round(_TPCH_ORDERS_AT_SCALE_1 * scale)
    return Recorded(customers.to_numpy().astype(np.int64), files.order_keys().draw(orders))


def _weather(part: float) -> Recorded:
    from semistream_lab.workload.cloud_sample import write_sample
    from semistream_lab.workload.clouds import longitude_keys

    with tempfile.TemporaryDirectory() as folder:
        keys = []
        for month, rows in ((4, _REPORTS / 2), (8, _REPORTS / 2), (12, _DECEMBER_REPORTS)):
            count = max(1_000, round(rows * part))
            path = write_sample(Path(folder) / f"reports-{month}", count, seed=0, month=month)
            keys.append(longitude_keys(path).draw(count))
    return Recorded(np.concatenate(keys[:2]), keys[2])


def _folder() -> Path:
    """Return where generated files stay for later runs."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "semistream" / "lab"


_TPCH_ROWS = 20_000_000
_TPCH_ROWS_AT_SCALE_1 = 150_000
_TPCH_ORDERS_AT_SCALE_1 = 1_500_000
_REPORTS = 20_000_000
_DECEMBER_REPORTS = 6_000_000

SOURCES = {
    "tpch": Source(_tpch, _TPCH_ROWS, row_bytes=223),
    "weather": Source(_weather, _REPORTS, row_bytes=128),
}
