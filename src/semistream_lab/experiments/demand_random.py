"""Cells that nobody chose: sizes, memories, exponents, ranks and profiles drawn at random, for DEMANDJOIN.

The plan is written from the seed, so that another seed gives other cells:
`python -m semistream_lab.experiments.demand_random SEED > src/semistream_lab/experiments/plans/demand-random.toml`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import exp, log

from semistream_lab.experiments.demand_grid import OURS, TUNED, Cell
from semistream_lab.experiments.evidence import Evidence
from semistream_lab.experiments.plan import Plan

RANDOM_GROUP = "demand-random"
SEED, CELLS = 2026, 40
_MASTER_ROWS = (200_000, 10_000_000)
_MEMORY_MB = (8.0, 300.0)
_MAX_EXPONENT = 1.4
_PLAN = f"""\
paper = "DEMANDJOIN"
figure = "random"
title = "DEMANDJOIN beside the best of the family in cells drawn at random"
says = "In cells that nobody chose no other algorithm is faster, though each is tuned for the cell."
ranks = ["sorted", "shuffled"]

[panels]
seed = [0]

[x]
name = "queues"
values = [5.0]
label = "Queues measured"

[metric]
name = "service_rate"
label = "Service rate (tuples/s)"
scale = "log"

[fixed]
"option.max_tuples" = 40_000_000

[[ways]]
label = "{OURS}"
algorithm = "demandjoin"

[[ways]]
label = "{TUNED}"
kind = "best-of-family"
tuned = true
"""
_SERIES = """
[[series]]
label = "{0.label}"
profile = "{0.profile}"
master_rows = {0.master_rows:_}
memory = "{0.memory_mb}MB"
exponent = {0.exponent}
ranks = "{0.ranks}"
"""


@dataclass(frozen=True)
class RandomCell:
    """One case."""

    profile: str
    master_rows: int
    memory_mb: int
    exponent: float
    ranks: str

    @property
    def label(self) -> str:
        """What sets it apart, in words."""
        return f"{self.master_rows / 1e6:g}M in {self.memory_mb} MB, {self.exponent:g} {self.ranks}, {self.profile}"


def random_cells(seed: int = SEED, count: int = CELLS) -> list[RandomCell]:
    """Return cells drawn with a seed: tables and memories by the logarithm of their size, all else evenly."""
    draw = random.Random(seed)
    return [
        RandomCell(
            profile=draw.choice(("papers", "ssd", "remote")),
            master_rows=round(_log_uniform(draw, *_MASTER_ROWS), -3),
            memory_mb=_log_uniform(draw, *_MEMORY_MB),
            exponent=round(draw.uniform(0.0, _MAX_EXPONENT), 2),
            ranks=draw.choice(("sorted", "shuffled")),
        )
        for _ in range(count)
    ]


def _log_uniform(draw: random.Random, low: float, high: float) -> int:
    return int(exp(draw.uniform(log(low), log(high))))


def plan_text(cells: Iterable[RandomCell]) -> str:
    """Return the plan of some cells."""
    return _PLAN + "".join(_SERIES.format(cell) for cell in cells)


def random_cells_of(plans: Iterable[Plan], evidence: Evidence) -> list[Cell]:
    """Return the cells in which both DEMANDJOIN and the others have been measured."""
    cells = []
    for plan in plans:
        # Each cell has its own order of ranks, so it comes with each order of the plan.
        planned = {one.series: one.point for one in plan.points(scale=evidence.scale, clock=evidence.clock)}
        found = {series: evidence.find(point.digest) for series, point in planned.items()}
        for series, case in planned.items():
            label = series.removesuffix(f", {OURS}")
            ours, tuned = found[series], found.get(f"{label}, {TUNED}")
            if label != series and ours is not None and tuned is not None:
                size = case.master_rows, case.memory_bytes
                cells.append(Cell(case.profile, *size, case.ranks, case.exponent, ours, tuned, None))
    return cells


def random_card(cells: Sequence[Cell]) -> str:
    """Return the part of the lab's page that lists the cells."""
    rows = "\n".join(_row(cell) for cell in cells)
    lost = sum(cell.is_lost for cell in cells)
    return (
        f'<section class="card" id="{RANDOM_GROUP}"><h3>DEMANDJOIN in cells drawn at random'
        f'<span class="id">{RANDOM_GROUP}</span></h3>'
        f'<p class="says">{len(cells)} cells, of which {lost} are lost.</p>'
        '<div class="scroll"><table class="numbers"><thead><tr><th>Costs</th><th>Table</th><th>Memory</th>'
        "<th>Exponent</th><th>Ranks</th><th>DEMANDJOIN</th><th>Best other</th><th>Ratio</th><th>Why</th></tr></thead>"
        f"<tbody>\n{rows}\n</tbody></table></div></section>"
    )


def _row(cell: Cell) -> str:
    shown = (
        f"{cell.master_rows / 1e6:g}M",
        f"{cell.memory_bytes / 1e6:g} MB",
        f"{cell.exponent:g}",
        cell.ranks,
        f"{cell.rate:,.0f}",
        f"{float(cell.tuned['service_rate'] or 0):,.0f} ({cell.best})",
    )
    values = "".join(f"<td>{escape(value)}</td>" for value in shown)
    kind = "fails" if cell.is_lost else "holds"
    return (
        f'<tr><th>{escape(cell.profile)}</th>{values}<td><b class="{kind}">{cell.ratio:.2f}</b></td>'
        f'<td class="why">{escape(cell.reason)}</td></tr>'
    )


if __name__ == "__main__":
    sys.stdout.write(plan_text(random_cells(int(sys.argv[1]) if len(sys.argv) > 1 else SEED)))
