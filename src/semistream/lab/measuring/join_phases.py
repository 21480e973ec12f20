"""Measures what reads bring along the join phases of SSIJ, which take no tuples in while they last."""

from __future__ import annotations

import numpy as np

from semistream.algorithms.measure import measure
from semistream.algorithms.registry import algorithm_named
from semistream.lab.measuring import rates
from semistream.lab.measuring.read_log import logged
from semistream.lab.point import Point, Row

_FEWEST_READS = 20
"""A phase of fewer reads is not divided."""


def run(point: Point) -> Row:
    """Measure the part of the phases that the options `part` (from 1 on) of `parts` name."""
    parts, part = int(point.option("parts", 10)), int(point.option("part", 1))
    recipe, log = logged(algorithm_named(point.algorithm))
    measured = measure(
        recipe,
        rates.table(point.master_rows),
        rates.workload(point),
        memory=point.memory_bytes,
        tuples=max(1, point.tuples),
        queues=point.queues,
        profile=rates.costs_of(point),
        accounting="papers",
        seed=point.seed,
        parameters=rates.parameters_of(point),
    )
    entered, answered = np.array(log.entered), np.array(log.answered, dtype=np.float64)
    starts = np.flatnonzero(np.diff(entered, prepend=-1))
    phases = [phase for phase in np.split(answered, starts[1:]) if len(phase) >= _FEWEST_READS]
    by_part = [np.array([some.mean() for some in np.array_split(phase, parts)]) for phase in phases]
    along = np.mean(by_part, axis=0) if by_part else np.full(parts, np.nan)
    return {
        **rates.row_of(measured),
        "phases": len(phases),
        "reads_per_phase": float(np.mean([len(phase) for phase in phases])) if phases else 0.0,
        "matches_per_read": float(along[part - 1]) if phases else None,
    }
