"""What a read for a key brings in a point: the papers' sentence has two readings."""

from __future__ import annotations

from semistream_lab.experiments.point import Point


def partitions_of(point: Point) -> str:
    """Return the option `partitions`: aligned, or from-key."""
    return str(dict(point.options).get("partitions", "aligned"))
