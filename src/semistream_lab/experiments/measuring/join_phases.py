"""Measures what reads bring along the join phases of SSIJ, which take no tuples in while they last."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from semistream.core.arrays import Float64Array
from semistream_lab.experiments.measuring.observed import measured, watched
from semistream_lab.experiments.measuring.read_log import LoggedChoice, ReadLog
from semistream_lab.experiments.point import Point, Row

_FEWEST_READS = 20
"""A phase of fewer reads is not divided."""


def run(point: Point) -> Row:
    """Measure the part of the phases that the options `part` (from 1 on) of `parts` name."""
    parts, part = int(point.option("parts", 10)), int(point.option("part", 1))
    phases = _phases(point.without_options("part", "parts"))
    if not phases:
        return {"phases": 0, "reads_per_phase": 0.0, "matches_per_read": None}
    return {
        "phases": len(phases),
        "reads_per_phase": float(np.mean([len(phase) for phase in phases])),
        "matches_per_read": float(np.mean([np.array_split(phase, parts)[part - 1].mean() for phase in phases])),
    }


@lru_cache(maxsize=2)
def _phases(point: Point) -> list[Float64Array]:
    """Return what each read of each join phase answered."""
    log = ReadLog()
    measured(point, watched(point, lambda inside: LoggedChoice(inside, log)))
    starts = np.flatnonzero(np.diff(np.array(log.entered), prepend=-1))
    answered = np.array(log.answered, dtype=np.float64)
    return [phase for phase in np.split(answered, starts[1:]) if len(phase) >= _FEWEST_READS]
