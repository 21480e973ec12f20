"""Counts the stream tuples that the pinned part of the disk buffer serves in a number of iterations."""

from __future__ import annotations

from dataclasses import replace

from semistream_lab.experiments.measuring import service_rates
from semistream_lab.experiments.point import Point, Row


def run(point: Point) -> Row:
    """Measure a steady run, and say what the pinned part serves in as many iterations as the option says."""
    row = service_rates.run(replace(point.without_options("iterations"), kind="rate"))
    hits, iterations = row["cache_hits"], row["iterations"]
    assert isinstance(hits, int)
    assert isinstance(iterations, int)
    return {**row, "pinned_tuples": hits / iterations * point.option("iterations", 4000)}
