"""The family on Spark: counts charged with the costs of stores, beside the rates of the papers' continuous loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from semistream.core.costs import CostProfile, Operations, profile_named
from semistream.core.flat_json import Scalar
from semistream_lab.experiments.evidence import Evidence, NotMeasuredError
from semistream_lab.experiments.measuring.on_spark import page_rows, works_side_by_side
from semistream_lab.experiments.plan import Plan
from semistream_lab.experiments.point import Row

FAMILY_GROUP = "spark-family"
WAYS = ("1 task", "1 task and a room", "4 tasks", "4 tasks and a room")
"""How an algorithm is run on Spark."""
LOOP = "loop"
STORES = {"papers": "the papers' disk", "ssd": "solid-state disk", "remote": "remote store, 5 ms"}
_LOOPS = {profile: f"loop with {profile}" for profile in STORES}
_LEVEL = 1.05
"""Rates that are closer are level: runs on Spark are not the same twice, because tasks go to any free worker."""
_MIN_RANKED = 3
SURVIVES, IS_LEVEL, REVERSED = "survives", "level", "reversed"
CLAIMED = (
    ("MESHJOIN", "INLJ"),
    ("R-MESHJOIN", "MESHJOIN"),
    ("SSIJ", "MESHJOIN"),
    ("HYBRIDJOIN", "INLJ"),
    ("HYBRIDJOIN", "MESHJOIN"),
    ("X-HYBRIDJOIN", "HYBRIDJOIN"),
    ("Tuned X-HYBRIDJOIN", "X-HYBRIDJOIN"),
    ("Optimised X-HYBRIDJOIN", "X-HYBRIDJOIN"),
    ("CACHEJOIN", "HYBRIDJOIN"),
    ("SSCJ", "CACHEJOIN"),
    ("HYBRIDJOIN-PQ", "HYBRIDJOIN"),
    ("HYBRIDJOIN-PQ", "HYBRIDJOIN-L"),
    ("CACHEJOIN-PQ", "CACHEJOIN"),
    ("CACHEJOIN-PQ", "CACHEJOIN-L"),
    ("P-CACHEJOIN", "CACHEJOIN"),
    ("OP-CACHEJOIN", "P-CACHEJOIN"),
)
"""What the papers say is faster than what."""


def charged_seconds(counted: Row, profile: CostProfile, *, side_by_side: bool) -> float:
    """Return what the counted operations of all tasks take one after the other, without Spark's own time.

    Requests are charged as at random places, as many at a time as the store takes; each row of a page that is read is
    looked up, as in the papers. Side by side, the stream is taken in while pages are read.
    """
    reading = Operations(
        seeks=_number(counted, "read_requests") / profile.max_in_flight,
        bytes_read=_number(counted, "bytes_read"),
        probes=_number(counted, "page_reads") * page_rows(),
    )
    taking_in = Operations(probes=_number(counted, "tuples_in"), outputs=_number(counted, "tuples_out"))
    both = profile.seconds(reading), profile.seconds(taking_in)
    return max(both) if side_by_side else sum(both)


@dataclass(frozen=True)
class FamilyCell:
    """One algorithm in one way."""

    algorithm: str
    """As people write it."""
    name: str
    way: str
    """One of WAYS, or the papers' loop with a store."""
    measured: Row

    def a_row(self, name: str) -> float:
        """Return a count, by the rows of the stream that came meanwhile."""
        return _number(self.measured, name) / _number(self.measured, "stream_rows")

    def rate(self, profile: str) -> float:
        """Return how many rows of the stream a store lets it serve in a second."""
        if self.way not in WAYS:
            return _number(self.measured, "service_rate")
        beside = works_side_by_side(self.name)
        seconds = charged_seconds(self.measured, profile_named(profile), side_by_side=beside)
        return _number(self.measured, "stream_rows") / seconds

    def row(self) -> Mapping[str, Scalar]:
        """Return the cell as a flat object."""
        place: dict[str, Scalar] = {"algorithm": self.algorithm, "way": self.way}
        if self.way in WAYS:
            place |= {f"rate_{profile}": self.rate(profile) for profile in STORES}
        return {**place, **{name: value for name, value in self.measured.items() if name != "wall_seconds"}}


class FamilyCells:
    """All cells that have been measured."""

    def __init__(self, cells: Sequence[FamilyCell]) -> None:
        self.cells = cells
        self._by_place = {(cell.algorithm, cell.way): cell for cell in cells}
        self.algorithms = list(dict.fromkeys(cell.algorithm for cell in cells))

    def at(self, algorithm: str, way: str) -> FamilyCell | None:
        """Return a cell, if it has been measured."""
        return self._by_place.get((algorithm, way))

    def rate(self, algorithm: str, way: str, profile: str) -> float | None:
        """Return the rate that a store allows, in one of WAYS or in the LOOP; None if it was not measured."""
        cell = self.at(algorithm, _LOOPS[profile] if way == LOOP else way)
        return None if cell is None else cell.rate(profile)

    def likeness(self, way: str, profile: str) -> float | None:
        """Return the correlation of ranks on Spark with those in the loop: 1 for the same order, -1 for the reverse."""
        rates = [(self.rate(name, LOOP, profile), self.rate(name, way, profile)) for name in self.algorithms]
        known = [(one, other) for one, other in rates if one is not None and other is not None]
        if len(known) < _MIN_RANKED:
            return None
        ranks = np.argsort(np.argsort(np.array(known), axis=0), axis=0)
        return float(np.corrcoef(ranks[:, 0], ranks[:, 1])[0, 1])

    def verdict(self, better: str, worse: str, way: str, profile: str) -> str | None:
        """Say whether what is faster in the papers is faster here; None if that was not measured."""
        one, other = self.rate(better, way, profile), self.rate(worse, way, profile)
        if one is None or other is None:
            return None
        return SURVIVES if one >= _LEVEL * other else REVERSED if other >= _LEVEL * one else IS_LEVEL


def family_cells(plans: Iterable[Plan], evidence: Evidence) -> FamilyCells:
    """Return what has been measured of the experiment."""
    cells = []
    for plan in plans:
        for one in plan.points(scale=evidence.scale, clock=evidence.clock, variants=False):
            try:
                row = evidence.of_ranks(one.point.ranks).rows(plan.id, one.series, one.x)[0]
            except NotMeasuredError:
                continue
            algorithm, way = one.series.split(", ", 1)
            cells.append(FamilyCell(algorithm, one.point.algorithm, way, row))
    return FamilyCells(cells)


def _number(row: Row, name: str) -> float:
    return float(row[name] or 0)
