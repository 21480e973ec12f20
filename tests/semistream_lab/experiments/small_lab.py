"""Experiments that take a moment, and work for processes, for the tests of the lab."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from semistream_lab.experiments.plan import Plan, parse_plan
from semistream_lab.experiments.point import Point
from semistream_lab.experiments.results import LabSettings, ResultsFolder

RATES = """
paper = "DEMANDJOIN"
figure = "Fig 7d"
title = "Rates & <memory>"
says = "More memory, more tuples."
ranks = ["sorted", "shuffled"]
predict = false

[x]
name = "memory"
values = ["1MB", "2MB"]
label = "Memory (MB)"
unit = 1e6

[fixed]
master_rows = 20_000
queues = 2

[[series]]
label = "INLJ"
algorithm = "inlj"
tuples = 200

[[series]]
label = "HYBRIDJOIN"
algorithm = "hybridjoin"
"""


def small_plan(name: str = "small", *changes: tuple[str, str]) -> Plan:
    """Return an experiment of eight points, with some texts of its plan changed."""
    text = RATES
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_plan(text, name)


FAILING = (('label = "INLJ"', 'label = "INLJ"\n"parameter.batch" = -1'),)
"""A change that makes half of the points fail."""


def results_folder(path: Path, clock: str = "model") -> ResultsFolder:
    """Return a folder for results."""
    return ResultsFolder.make(path, LabSettings(1.0, clock))


def points_of(plans: Sequence[Plan]) -> list[Point]:
    """Return all points of some experiments."""
    return [planned.point for plan in plans for planned in plan.points()]


def die_at_large_memory(point: Point, folder: ResultsFolder) -> str:
    """End the process if the point has 2 MB, as the system does when memory is short."""
    del folder
    if point.memory_bytes == 2_000_000:
        os._exit(9)
    return ""
