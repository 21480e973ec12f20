"""Measures the service rate of one algorithm on a stream that never makes it wait, or at a given arrival rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache

import numpy as np
import pyarrow as pa

from semistream.algorithms.registry import algorithm_named
from semistream.core.budget import MemoryBudget
from semistream.core.clock import ModelClock
from semistream.core.costs import CostProfile, profile_named
from semistream.engine.assembly import Assembly
from semistream.generator import PoissonArrivals, Workload, ZipfKeys
from semistream.store.contract import MasterStore
from semistream.store.memory import MemoryStore
from semistream_lab.cost import Situation, tuned_parameters
from semistream_lab.experiments.confidence import half_width_of_parts
from semistream_lab.experiments.point import Point, Row, Scalar, varied
from semistream_lab.measurement import MAX_TUPLES, Measurement, measure

ROW_BYTES = 120
PAGE_BYTES = 8192


def run(point: Point) -> Row:
    """Measure a point on generated keys on the model clock, on a table in memory."""
    return measured_row(point, table_of(point), workload(point))


def assembly_of(point: Point, clock: ModelClock) -> Assembly:
    """Return the join of a point on generated keys, its memory counted as the papers do."""
    return Assembly(
        algorithm_named(point.algorithm),
        table_of(point),
        MemoryBudget(point.memory_bytes),
        clock,
        accounting="papers",
        seed=point.seed,
        parameters=parameters_of(point),
        partitions=point.partitions,
    )


def measured_row(point: Point, store: MasterStore, stream: Workload) -> Row:
    """Measure a point on a given table and stream."""
    parameters = parameters_of(point)
    measured = measure(
        algorithm_named(point.algorithm),
        store,
        stream,
        memory=point.memory_bytes,
        tuples=max(1, point.tuples),
        queues=point.queues,
        profile=costs_of(point) if point.clock == "model" else None,
        accounting="papers",
        seed=point.seed,
        parameters=parameters,
        max_tuples=int(point.option("max_tuples", MAX_TUPLES)),
        whole_scans=bool(point.option("whole_scans", 0)),
        partitions=point.partitions,
        stream_row_bytes=point.option("stream_row_bytes", 0),
    )
    return {**row_of(measured), **{f"parameter_{name}": value for name, value in parameters.items()}}


def table_of(point: Point) -> MasterStore:
    """Return the master table of a point on generated keys."""
    return table(point.master_rows, page_rows_of(point))


def page_rows_of(point: Point) -> int:
    """Return the rows of a page: as many as fill one of the papers' size, or what the option `page_rows` says.

    Where reads begin at keys a page has one row, so that a read begins at the very row: how many pages it brings
    decides much there (docs/decisions/042-where-a-read-begins.md).
    """
    return int(point.option("page_rows", 1 if reads_from_key(point) else PAGE_BYTES // ROW_BYTES))


def reads_from_key(point: Point) -> bool:
    """Say whether the reads of a point begin at keys: it asks for that, and its algorithm loads pages by keys."""
    return point.partitions == "from-key" and algorithm_named(point.algorithm).loads_by_key


@lru_cache(maxsize=2)
def table(rows: int, page_rows: int = PAGE_BYTES // ROW_BYTES) -> MasterStore:
    """Return a master table of keys 1 to `rows`, in pages of the papers' size or of so many rows."""
    keys = pa.table({"key": np.arange(1, rows + 1, dtype=np.int64)})
    return MemoryStore(keys, "key", rows_per_page=page_rows, row_bytes=ROW_BYTES)


def keys_of(point: Point) -> ZipfKeys:
    """Return the keys of a point's stream."""
    return ZipfKeys(point.master_rows, point.exponent, seed=point.seed, ranks=point.ranks, law=point.law)


def workload(point: Point) -> Workload:
    """Return the stream of a point."""
    keys = keys_of(point)
    arrivals = PoissonArrivals(point.arrival_rate, seed=point.seed) if point.arrival_rate else None
    return Workload(keys, arrivals)


def costs_of(point: Point) -> CostProfile:
    """Return what operations cost in a point."""
    return varied(profile_named(point.profile), point.factors)


def parameters_of(point: Point) -> dict[str, float]:
    """Return the knobs of the algorithm, tuned for the point if it wants that."""
    given = dict(point.parameters)
    if not point.tuned:
        return given
    return {**tuned_parameters(point.algorithm, situation_of(point), profile_named(point.profile)), **given}


def situation_of(point: Point) -> Situation:
    """Return the case of a point as the cost models see it."""
    return Situation(point.master_rows, point.memory_bytes, point.exponent, point.ranks, law=point.law)


def row_of(measured: Measurement) -> dict[str, Scalar]:
    """Return a measurement as a flat object."""
    stats = measured.stats
    row: dict[str, Scalar] = {
        "tuples": stats.tuples_out,
        "seconds": measured.seconds,
        "service_rate": measured.service_rate,
        "confidence": half_width_of_parts(measured.part_rates),
        "cache_hits": stats.cache_hits,
        "read_hits": stats.read_hits,
        "absent": stats.absent,
        "iterations": stats.iterations,
        "page_reads": stats.page_reads,
        "read_requests": stats.read_requests,
        "bytes_read": stats.bytes_read,
        "mean_wait_seconds": stats.mean_wait_seconds,
        "max_wait_seconds": stats.max_wait_seconds,
        "max_wait_tuples": stats.max_wait_tuples,
        "cache_admissions": stats.cache_admissions,
        "waiting_slots": measured.waiting_slots,
        "cache_tuples": measured.cache_tuples,
        "long_enough": measured.is_long_enough,
        "wall_seconds": measured.wall_seconds,
    }
    row.update({f"memory_{name.replace(' ', '_')}": size for name, size in stats.memory_bytes.items()})
    operations: Mapping[str, float] = asdict(measured.operations) if measured.operations is not None else {}
    row.update({f"operations_{name}": count for name, count in operations.items()})
    return row
