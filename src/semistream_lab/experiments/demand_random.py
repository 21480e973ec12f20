"""Cells that nobody chose: sizes, memories, exponents, ranks and profiles drawn at random, for DEMANDJOIN."""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import exp, log

GROUP = "demand-random"
SEED, CELLS = 2026, 40
_MASTER_ROWS = (200_000, 10_000_000)
_MEMORY_MB = (8.0, 300.0)
_MAX_EXPONENT = 1.4


@dataclass(frozen=True)
class RandomCell:
    """One case."""

    profile: str
    master_rows: int
    memory_bytes: int
    exponent: float
    ranks: str

    @property
    def settings(self) -> dict[str, str | int | float]:
        """Return what it sets of a point, as a plan does."""
        return {
            "profile": self.profile,
            "master_rows": self.master_rows,
            "memory": self.memory_bytes,
            "exponent": self.exponent,
            "ranks": self.ranks,
        }


def random_cells(seed: int = SEED, count: int = CELLS) -> list[RandomCell]:
    """Return cells drawn with a seed: tables and memories by the logarithm of their size, all else evenly."""
    draw = random.Random(seed)
    return [
        RandomCell(
            profile=draw.choice(("papers", "ssd", "remote")),
            master_rows=round(_log_uniform(draw, *_MASTER_ROWS), -3),
            memory_bytes=_log_uniform(draw, *_MEMORY_MB) * 1_000_000,
            exponent=round(draw.uniform(0.0, _MAX_EXPONENT), 2),
            ranks=draw.choice(("sorted", "shuffled")),
        )
        for _ in range(count)
    ]


def _log_uniform(draw: random.Random, low: float, high: float) -> int:
    return int(exp(draw.uniform(log(low), log(high))))
