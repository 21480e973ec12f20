"""What the bounds show: caches beside Belady's MIN, reads beside the fewest, stream by stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from semistream.core.flat_json import Scalar
from semistream_lab.experiments.evidence import Evidence, NotMeasuredError
from semistream_lab.experiments.plan import Plan
from semistream_lab.experiments.point import Row

BOUNDS_GROUP, TINY_GROUP = "bounds", "bounds-tiny"
OURS = "DEMANDJOIN"
STREAMS = {
    "shuffled": "the same keys stay hot",
    "sorted": "the same keys stay hot, side by side in the table",
    "jumping": "other keys are hot every 4 tuples a row",
    "drifting": "keys trade places, all within 4 tuples a row",
    "newest": "new keys are hot, all were within 20 tuples a row",
}
TINY_JOINS = {"pages": "6 pages, 5 waiting tuples", "cache": "6 rows on 3 pages, 4 waiting tuples, 1 cached row"}
SETTLED = ("shuffled", "sorted")
"""The streams in which the same keys stay hot, so that bounds of reads are known."""
CACHES = {
    "min": "MIN",
    "static": "the most frequent keys",
    "demandjoin": "DEMANDJOIN's",
    "w_tinylfu": "W-TinyLFU",
    "s3_fifo": "S3-FIFO",
    "sieve": "SIEVE",
    "lru": "LRU",
}
"""The caches of DEMANDJOIN's size on DEMANDJOIN's stream."""
RULES = {
    "hybridjoin": "oldest first (HYBRIDJOIN)",
    "hybridjoin_pq": "frequent pages on schedule (-PQ)",
    "most_requests_first": "most requests first",
    "longest_wait_first": "longest wait first",
    "requests_times_wait": "R×W",
    "demandjoin": "plan by number × age (DEMANDJOIN)",
}


@dataclass(frozen=True)
class BoundsCell:
    """One algorithm on one stream, or the rules on tiny joins."""

    stream: str
    exponent: float
    series: str
    measured: Row

    def number(self, name: str) -> float | None:
        """Return a measured number; None if there is none."""
        value = self.measured.get(name)
        return None if value is None else float(value)

    def ratio(self, name: str, bound: str) -> float | None:
        """Return one number beside another."""
        value, best = self.number(name), self.number(bound)
        return None if value is None or not best else value / best

    def row(self) -> Mapping[str, Scalar]:
        """Return the cell as a flat object."""
        place: dict[str, Scalar] = {"stream": self.stream, "exponent": self.exponent, "series": self.series}
        return {**place, **self.measured}


class BoundsCells:
    """All cells of one group that have been measured."""

    def __init__(self, cells: Sequence[BoundsCell]) -> None:
        self.cells = cells
        self._by_place = {(cell.stream, cell.exponent, cell.series): cell for cell in cells}
        self.streams = list(dict.fromkeys(cell.stream for cell in cells))
        self.exponents = sorted({cell.exponent for cell in cells})
        self.series = list(dict.fromkeys(cell.series for cell in cells))

    def at(self, stream: str, exponent: float, series: str) -> BoundsCell | None:
        """Return a cell, if it has been measured."""
        return self._by_place.get((stream, exponent, series))

    def ratios(self, stream: str, series: str, name: str, bound: str) -> list[float | None]:
        """Return one number beside another for every exponent."""
        cells = [self.at(stream, exponent, series) for exponent in self.exponents]
        return [None if cell is None else cell.ratio(name, bound) for cell in cells]


def bounds_cells(plans: Iterable[Plan], evidence: Evidence) -> BoundsCells:
    """Return what has been measured of some panels."""
    cells = []
    for plan in plans:
        stream = plan.id.removeprefix(f"{plan.group}-")
        for one in plan.points(scale=evidence.scale, clock=evidence.clock, variants=False):
            try:
                row = evidence.of_ranks(one.point.ranks).rows(plan.id, one.series, one.x)[0]
            except NotMeasuredError:
                continue
            cells.append(BoundsCell(stream, one.x, one.series, row))
    places = [*STREAMS, *TINY_JOINS]
    return BoundsCells(sorted(cells, key=lambda cell: places.index(cell.stream)))
