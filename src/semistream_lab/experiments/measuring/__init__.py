"""The kinds of measurement: how a point becomes a row of results."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from semistream.core.errors import InvalidSettingError
from semistream_lab.experiments.point import Point, Row

_MODULES = {
    "rate": "rates",
    "arrivals": "at_arrival_rate",
    "generator": "generator",
    "hard-inputs": "hard_inputs",
    "page-use": "page_use",
    "pinned-part": "pinned_part",
    "best-of-family": "best_of_family",
    "disk-bound": "disk_bound",
    "handover": "handover",
    "join-phases": "join_phases",
    "page-reads": "page_reads",
    "switching": "switching",
}
"""Which module of this package measures a kind; each has a function `run(point) -> Row`."""


def run(point: Point) -> Row:
    """Measure one point."""
    if point.kind not in _MODULES:
        raise InvalidSettingError(f"There is no kind of measurement {point.kind!r}: choose from {', '.join(_MODULES)}.")
    measure: Callable[[Point], Row] = import_module(f"{__name__}.{_MODULES[point.kind]}").run
    return measure(point)
