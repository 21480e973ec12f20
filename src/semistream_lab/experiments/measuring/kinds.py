"""The kinds of measurement: how a point becomes a row of results."""

from __future__ import annotations

from collections.abc import Callable

from semistream.core.errors import InvalidSettingError
from semistream_lab.experiments.measuring import (
    at_arrival_rate,
    best_of_family,
    bounds,
    disk_bound,
    generator,
    handover,
    hard_inputs,
    join_phases,
    page_reads,
    page_use,
    pinned_part,
    service_rates,
    switching,
    tiny_joins,
    waiting_room,
)
from semistream_lab.experiments.point import Point, Row

_KINDS: dict[str, Callable[[Point], Row]] = {
    "rate": service_rates.run,
    "arrivals": at_arrival_rate.run,
    "generator": generator.run,
    "hard-inputs": hard_inputs.run,
    "page-use": page_use.run,
    "pinned-part": pinned_part.run,
    "best-of-family": best_of_family.run,
    "bounds": bounds.run,
    "disk-bound": disk_bound.run,
    "handover": handover.run,
    "join-phases": join_phases.run,
    "page-reads": page_reads.run,
    "switching": switching.run,
    "tiny-joins": tiny_joins.run,
    "waiting-room": waiting_room.run,
}


def run(point: Point) -> Row:
    """Measure one point."""
    if point.kind not in _KINDS:
        raise InvalidSettingError(f"There is no kind of measurement {point.kind!r}: choose from {', '.join(_KINDS)}.")
    return _KINDS[point.kind](point)
