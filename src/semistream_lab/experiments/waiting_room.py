"""What the simulated waiting room shows: the same stream in three ways, store by store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from semistream.core.flat_json import Scalar
from semistream_lab.experiments.evidence import Evidence, NotMeasuredError
from semistream_lab.experiments.plan import Plan
from semistream_lab.experiments.point import Point, Row

ROOM_GROUP = "waiting-room"
SHORT, LONG, ROOM, BY_AGE = "every 1 s", "every 10 s", "every 1 s, room of 10 s", "every 1 s, room of 10 s by age"
WAYS = (SHORT, LONG, ROOM)
"""How the rows of a stream are joined, but for another rule of the room."""
STORES = {
    "papers": "the papers' disk",
    "ssd": "solid-state disk",
    "remote": "remote store, 5 ms",
    "remote-20ms": "remote store, 20 ms",
}
OURS = "DEMANDJOIN"


@dataclass(frozen=True)
class RoomCell:
    """One stream, joined in one way."""

    profile: str
    exponent: float
    algorithm: str
    """As people write it."""
    way: str
    rate: float
    """Rows a second; 0 where the highest one was looked for."""
    measured: Row

    def number(self, name: str) -> float | None:
        """Return a measured number; None if the join fell behind before there was one."""
        value = self.measured.get(name)
        return None if value is None else float(value)

    def row(self) -> Mapping[str, Scalar]:
        """Return the cell as a flat object."""
        place: dict[str, Scalar] = {
            "profile": self.profile,
            "exponent": self.exponent,
            "algorithm": self.algorithm,
            "way": self.way,
            "rate": self.rate,
        }
        return {**place, **{name: value for name, value in self.measured.items() if name != "wall_seconds"}}


class RoomCells:
    """All cells that have been measured."""

    def __init__(self, cells: Sequence[RoomCell]) -> None:
        self.cells = cells
        self._by_place = {(c.profile, c.exponent, c.algorithm, c.way, c.rate): c for c in cells}
        self.profiles = [name for name in STORES if any(cell.profile == name for cell in cells)]
        self.exponents = sorted({cell.exponent for cell in cells})
        self.algorithms = list(dict.fromkeys(cell.algorithm for cell in cells))
        self.rates = sorted({cell.rate for cell in cells if cell.rate})

    def at(self, profile: str, exponent: float, algorithm: str, way: str, rate: float) -> RoomCell | None:
        """Return a cell, if it has been measured."""
        return self._by_place.get((profile, exponent, algorithm, way, rate))

    def number(self, name: str, profile: str, exponent: float, algorithm: str, way: str, rate: float) -> float | None:
        """Return a number of a cell; None if there is none."""
        cell = self.at(profile, exponent, algorithm, way, rate)
        return None if cell is None else cell.number(name)

    def sustainable(self, profile: str, exponent: float, algorithm: str, way: str) -> float | None:
        """Return the highest rate that the trigger sustains."""
        return self.number("sustainable_rate", profile, exponent, algorithm, way, 0.0)


def room_cells(plans: Iterable[Plan], evidence: Evidence) -> RoomCells:
    """Return what has been measured of the experiment."""
    cells = []
    for plan in plans:
        for one in plan.points(scale=evidence.scale, clock=evidence.clock, variants=False):
            try:
                row = evidence.of_ranks(one.point.ranks).rows(plan.id, one.series, one.x)[0]
            except NotMeasuredError:
                continue
            cells.append(_cell(one.point, one.series, one.x, row))
    return RoomCells(cells)


def _cell(point: Point, series: str, rate: float, row: Row) -> RoomCell:
    algorithm, way = series.split(", ", 1)
    return RoomCell(point.profile, point.exponent, algorithm, way, rate, row)
