"""Measures how many of the tuples that wait need a read, just before each read."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.policies.contract import Moment, PageChoice, Queue
from semistream_lab.experiments.measuring import rates
from semistream_lab.experiments.measuring.observed import measured, watched
from semistream_lab.experiments.measuring.read_log import LoggedChoice, ReadLog
from semistream_lab.experiments.point import Point, Row


@dataclass
class _WaitingLog(ReadLog):
    waiting: list[int] = field(default_factory=list)


class _CountedChoice(LoggedChoice):
    """Writes down how many tuples wait when the choice is asked: pinned pages have answered theirs by then."""

    def __init__(self, inside: PageChoice, log: _WaitingLog) -> None:
        super().__init__(inside, log)
        self._waiting = log.waiting

    def choose(self, queue: Queue, moment: Moment) -> Int64Array:
        self._waiting.append(queue.count)
        return super().choose(queue, moment)


def run(point: Point) -> Row:
    """Measure a point."""
    log = _WaitingLog()
    result = measured(point, watched(point, lambda inside: _CountedChoice(inside, log)))
    later = log.waiting[len(log.waiting) // 2 :]
    return {**rates.row_of(result), "disk_bound_tuples": float(np.mean(later))}
