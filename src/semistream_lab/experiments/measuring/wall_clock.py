"""Measures the service rate in real time, on a master table in a file, and what its operations cost meanwhile."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from semistream.algorithms.registry import algorithm_named
from semistream.core.arrays import Int64Array
from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.engine.recipe import Recipe
from semistream.generator import Workload, ZipfKeys
from semistream.master_table import MasterTable
from semistream.store.contract import MasterStore
from semistream_lab.cost.engine_times import EngineTimes, can_be_timed
from semistream_lab.experiments.measuring import rates
from semistream_lab.experiments.point import Law, Point, Row, Scalar
from semistream_lab.experiments.predictions import TABLE_SIZES, cost_columns
from semistream_lab.measurement import MAX_TUPLES, Measurement, measure
from semistream_lab.workload.repeated_keys import RepeatedKeys

_KEY_AND_OVERHEAD_BYTES = 11
"""The key, and what a page has beside its rows, as a part of a row."""
_BATCH_ROWS = 1 << 16
_DRAWN_KEYS = 1 << 24
"""The stream is drawn before the clock starts, and begins again at its end."""
_JOINED_SECONDS, _TIMED_SECONDS = 0.06, 0.03
"""How long the join runs, and how long its operations are timed then, in turn: what else a machine does changes within
a second."""
_PARTS = 10


def run(point: Point, tables: Path) -> Row:
    """Measure a point on the table of its size, which `build_table` has made.

    Between slices of the run the operations of the algorithm are timed, on the same store and in the same sizes, so
    that a prediction from their costs stands beside a rate of the same moments.
    """
    if point.data != "zipf" or point.kind != "rate" or point.arrival_rate:
        raise InvalidSettingError("Real time is measured with saturated streams of generated keys: leave the rest out.")
    store, direct = _opened(tables / str(point.master_rows))
    keys = _drawn(point.master_rows, point.exponent, point.seed, point.ranks, point.law)
    parameters = rates.parameters_of(point)
    recipe = algorithm_named(point.algorithm)
    times = _engine_times(recipe, store, RepeatedKeys.of(keys), point, parameters) if point.option("timed", 1) else None
    timed = _Slices(times)
    measured = measure(
        recipe,
        store,
        Workload(RepeatedKeys.of(keys)),
        memory=point.memory_bytes,
        tuples=max(1, point.tuples),
        queues=point.queues,
        accounting="papers",
        seed=point.seed,
        parameters=parameters,
        max_tuples=int(point.option("max_tuples", MAX_TUPLES)),
        whole_scans=bool(point.option("whole_scans", 0)),
        partitions=point.partitions,
        progress=timed.after_round,
    )
    return {
        **rates.row_of(timed.without_pauses(measured)),
        **{f"parameter_{name}": value for name, value in parameters.items()},
        "direct": direct,
        **_table_sizes(store),
        **timed.costs(),
    }


class _Slices:
    """Times operations in the pauses that it makes in a run, and takes the pauses out of the run's time again."""

    def __init__(self, times: EngineTimes | None) -> None:
        self._times = times
        self._paused = 0.0
        self._resumed = time.perf_counter()
        self._began = 0.0
        self._moments: list[tuple[int, float]] = []

    def after_round(self, done: int, _: int) -> None:
        """Note how far the run is; make a pause at its start, and whenever it is time."""
        now = time.perf_counter()
        is_start = not self._moments
        if is_start:
            self._began = now
        self._moments.append((done, now - self._began - self._paused))
        if self._times is not None and (is_start or now - self._resumed >= _JOINED_SECONDS):
            self._times.measure(_TIMED_SECONDS)
            self._resumed = time.perf_counter()
            self._paused += self._resumed - now

    def without_pauses(self, measured: Measurement) -> Measurement:
        """Return a measurement as it would be without the pauses."""
        seconds = measured.seconds - self._paused
        stats = measured.stats
        # What waited during a pause waited for nothing; on average that holds for all of the tuples alike.
        part = seconds / measured.seconds if measured.seconds else 1.0
        stats = replace(
            stats,
            wait_seconds_total=stats.wait_seconds_total * part,
            max_wait_seconds=stats.max_wait_seconds * part,
        )
        return replace(measured, seconds=seconds, stats=stats, part_rates=self._part_rates())

    def costs(self) -> dict[str, Scalar]:
        """Return what operations cost meanwhile, if that can be told."""
        if self._times is None:
            return {}
        return {**cost_columns(self._times.profile()), "costs_seconds": self._paused}

    def _part_rates(self) -> tuple[float, ...]:
        done, at = np.array(self._moments, dtype=np.float64).T
        edges = np.unique(np.searchsorted(at, np.linspace(at[0], at[-1], _PARTS + 1)))
        spans = np.diff(at[edges])
        return tuple((np.diff(done[edges])[spans > 0] / spans[spans > 0]).tolist())


def _engine_times(
    recipe: Recipe, store: MasterStore, keys: RepeatedKeys, point: Point, parameters: Mapping[str, float]
) -> EngineTimes | None:
    if not can_be_timed(recipe):
        return None
    return EngineTimes(
        recipe,
        store,
        keys,
        memory=point.memory_bytes,
        accounting="papers",
        parameters=parameters,
        seed=point.seed,
    )


def _table_sizes(store: MasterStore) -> dict[str, Scalar]:
    """Return the sizes of rows and pages in the file."""
    rows_per_page = -(-store.row_count // store.page_count)
    row_bytes = max(1, round(store.size_bytes / store.row_count))
    return dict(zip(TABLE_SIZES, (row_bytes, row_bytes * rows_per_page), strict=True))


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


def read_seconds(rows: int, read_bytes: int, *, reads: int = 200, seed: int = 0) -> tuple[float, bool]:
    """Return the median seconds of a read at random from a table in a file, and whether the page cache was passed by.

    The table is made for this and removed afterwards.
    """
    random = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        build_table(rows, Path(folder))
        table = MasterTable(Path(folder) / str(rows))
        try:
            store, direct = table.open(direct=True), True
        except SemistreamError:
            store, direct = table.open(), False
        with store:
            pages = max(1, min(store.page_count, round(read_bytes * store.page_count / store.size_bytes)))
            taken = []
            for first in random.integers(0, store.page_count - pages + 1, reads).tolist():
                began = time.perf_counter()
                store.read(np.array([first]), np.array([first + pages - 1]))
                taken.append(time.perf_counter() - began)
    return float(np.median(taken)), direct


@lru_cache(maxsize=1)
def _drawn(master_rows: int, exponent: float, seed: int, ranks: Literal["sorted", "shuffled"], law: Law) -> Int64Array:
    """Return the stream, which the algorithms that take turns at a place have in common."""
    return ZipfKeys(master_rows, exponent, seed=seed, ranks=ranks, law=law).draw(_DRAWN_KEYS)


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
