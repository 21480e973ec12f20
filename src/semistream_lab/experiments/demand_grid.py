"""What the grid shows: DEMANDJOIN beside the best other algorithm in every cell, and where it loses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

from semistream.core.flat_json import Scalar
from semistream_lab.experiments.evidence import Evidence, NotMeasuredError
from semistream_lab.experiments.plan import Plan
from semistream_lab.experiments.point import Row

GROUP = "demand-grid"
OURS, TUNED, AS_PUBLISHED = "DEMANDJOIN", "Best other, tuned", "Best other, as in its paper"
TIE = 0.98
"""What is within two hundredths of the best counts as a tie."""
_MEASURED, _EXPECTED = "rate_", "expected_"


@dataclass(frozen=True)
class Cell:
    """One case of the grid."""

    profile: str
    master_rows: int
    memory_bytes: int
    ranks: str
    exponent: float
    ours: Row
    tuned: Row
    published: Row | None
    """The others as in their papers, if that has been run."""

    @property
    def rate(self) -> float:
        """What DEMANDJOIN serves."""
        return float(self.ours["service_rate"] or 0)

    @property
    def best(self) -> str:
        """The best other algorithm."""
        return str(self.tuned["best"])

    @property
    def ratio(self) -> float:
        """What DEMANDJOIN serves beside the best other."""
        return self.rate / float(self.tuned["service_rate"] or 0)

    @property
    def is_lost(self) -> bool:
        """Whether another algorithm serves clearly more."""
        return self.ratio < TIE

    @property
    def reason(self) -> str:
        """Why the cell is lost, in one sentence."""
        if not self.is_lost:
            return ""
        gap = float(self.tuned["service_rate"] or 0) - self.rate
        if gap < sum(float(row.get("confidence") or 0) for row in (self.ours, self.tuned)):
            return "Not sure: the confidence intervals of the two overlap."
        ours, other = (_bytes_per_tuple(row) for row in (self.ours, self.tuned))
        if ours <= other:
            return "DEMANDJOIN reads no more for a tuple: the processors are the limit."
        return f"{self.best} reads {other:,.0f} bytes for a tuple, DEMANDJOIN {ours:,.0f}."

    def row(self) -> Mapping[str, Scalar]:
        """Return the cell as a flat object."""
        return {
            "profile": self.profile,
            "master_rows": self.master_rows,
            "memory_bytes": self.memory_bytes,
            "ranks": self.ranks,
            "exponent": self.exponent,
            "demandjoin": self.rate,
            "best_other": self.best,
            "best_other_rate": self.tuned["service_rate"],
            "ratio": self.ratio,
            "lost": self.is_lost,
            "reason": self.reason,
            "best_as_published": self.published["best"] if self.published else None,
            "best_as_published_rate": self.published["service_rate"] if self.published else None,
        }


@dataclass(frozen=True)
class Summary:
    """What some cells show together."""

    cells: int
    lost: int
    beside_best: float
    """The geometric mean of the ratios to the best other of each cell."""
    single: str
    """The other algorithm that is best over all cells, tuned for each of them."""
    beside_single: float
    published: str
    """The same as in the papers; empty if that has not been run in all cells."""
    beside_published: float


def cells_of(plans: Iterable[Plan], evidence: Evidence) -> list[Cell]:
    """Return the cells in which both DEMANDJOIN and the others have been measured."""
    cells = []
    for plan in plans:
        for one in plan.points(scale=evidence.scale, clock=evidence.clock, variants=False):
            if one.series != OURS:
                continue
            point = one.point
            at = (plan.id, one.x, point.ranks)
            ours, tuned = _row(evidence, at, OURS), _row(evidence, at, TUNED)
            if ours is not None and tuned is not None:
                cells.append(
                    Cell(
                        point.profile,
                        point.master_rows,
                        point.memory_bytes,
                        point.ranks,
                        point.exponent,
                        ours,
                        tuned,
                        _row(evidence, at, AS_PUBLISHED),
                    )
                )
    return cells


def summary_of(cells: Sequence[Cell]) -> Summary:
    """Return what cells show together; there must be one at least."""
    single, beside_single = _best_single([(cell.rate, cell.tuned) for cell in cells])
    published, beside_published = "", 0.0
    as_published = [(cell.rate, cell.published) for cell in cells if cell.published is not None]
    if len(as_published) == len(cells):
        published, beside_published = _best_single(as_published)
    return Summary(
        len(cells),
        sum(cell.is_lost for cell in cells),
        _geometric_mean([cell.ratio for cell in cells]),
        single,
        beside_single,
        published,
        beside_published,
    )


def _best_single(cells: Sequence[tuple[float, Row]]) -> tuple[str, float]:
    """Return the other algorithm with the highest geometric mean, and how many times that of DEMANDJOIN is as high.

    Where an algorithm was too far behind to be measured, what its model expects stands for it.
    """
    rates = [_rates(row) for _, row in cells]
    everywhere = set.intersection(*(set(one) for one in rates))
    ours = _geometric_mean([rate for rate, _ in cells])
    means = {name: _geometric_mean([one[name] for one in rates]) for name in sorted(everywhere)}
    best = max(means, key=lambda name: means[name])
    return best, ours / means[best]


def _rates(row: Row) -> dict[str, float]:
    expected = {name.removeprefix(_EXPECTED): value for name, value in row.items() if name.startswith(_EXPECTED)}
    measured = {name.removeprefix(_MEASURED): value for name, value in row.items() if name.startswith(_MEASURED)}
    return {name: float(value) for name, value in {**expected, **measured}.items() if value}


def _geometric_mean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def _bytes_per_tuple(row: Row) -> float:
    return float(row["bytes_read"] or 0) / float(row["tuples"] or 1)


def _row(evidence: Evidence, at: tuple[str, float, str], series: str) -> Row | None:
    experiment, x, ranks = at
    try:
        return evidence.of_ranks(ranks).rows(experiment, series, x)[0]
    except NotMeasuredError:
        return None
