"""Options of a point that several kinds of measurement have."""

from __future__ import annotations

from dataclasses import replace

from semistream.algorithms.registry import algorithm_named
from semistream_lab.experiments.point import Point


def partitions_of(point: Point) -> str:
    """Return the option `partitions`, what a read for a key brings: aligned partitions, or from-key."""
    return str(dict(point.options).get("partitions", "aligned"))


def reads_from_key(point: Point) -> bool:
    """Say whether the reads of a point begin at keys: it asks for that, and its algorithm loads pages by keys."""
    return partitions_of(point) == "from-key" and algorithm_named(point.algorithm).loads_by_key


def without_options(point: Point, *names: str) -> Point:
    """Return a point without some of its options."""
    return replace(point, options=tuple(option for option in point.options if option[0] not in names))
