"""Measures the service rate on the data that a point names: generated keys, or recorded ones."""

from __future__ import annotations

from semistream_lab.experiments.measuring import rates, recorded
from semistream_lab.experiments.point import Point, Row


def run(point: Point) -> Row:
    """Measure a point on the model clock, on a table in memory."""
    return rates.run(point) if point.data == "zipf" else recorded.run(point)
