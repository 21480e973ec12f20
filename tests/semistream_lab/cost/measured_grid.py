"""Grids of measurements that know nothing of the cost models, to judge what the tuner chooses."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.costs import PAPERS
from semistream.core.errors import BudgetTooSmallError
from semistream.generator import Workload, ZipfKeys
from semistream.store.memory import MemoryStore
from semistream_lab.cost import Situation, tune
from semistream_lab.measurement import measure

ROWS, MEMORY_BYTES = 200_000, 5_000_000
QUEUES = 20.0
VALUES: Mapping[str, tuple[float, ...]] = {
    "read_bytes": (20_000, 50_000, 120_000, 300_000),
    "parts": (30, 60, 120, 250, 500),
    "pinned_share": (0.005, 0.02, 0.06, 0.15),
    "cache_share": (0.02, 0.08, 0.25),
    "threshold": (3, 8),
    "position": (0.25, 0.5, 0.75),
    "handover_bytes": (50_000, 400_000),
    "buffer_fill": (0.3, 1.0),
    "eagerness": (1.0, 2.0, 4.0),
}
BLOCK_THRESHOLDS = (0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Judgement:
    """What the tuner's choice is worth beside the best point of a grid."""

    points: int
    best: Mapping[str, float]
    best_rate: float
    choice: Mapping[str, float]
    choice_rate: float

    @property
    def behind(self) -> float:
        """By how much the choice is behind the best of the grid; negative if it is better."""
        return 1 - self.choice_rate / self.best_rate


def judged(name: str, exponent: float, ranks: str, *, seed: int = 3, queues: float = QUEUES) -> Judgement:
    """Measure a grid and the tuner's choice with the same seed."""
    situation = Situation(ROWS, MEMORY_BYTES, exponent, ranks)
    store = MemoryStore.of_codes(ROWS, row_bytes=situation.row_bytes, page_bytes=situation.page_bytes)

    def rate(parameters: Mapping[str, float]) -> float:
        keys = ZipfKeys(ROWS, exponent, seed=seed, ranks=ranks)  # type: ignore[arg-type]
        try:
            result = measure(
                ALGORITHMS[name],
                store,
                Workload(keys),
                memory=MEMORY_BYTES,
                tuples=50_000,
                queues=queues,
                profile=PAPERS,
                accounting="papers",
                seed=seed,
                parameters=parameters,
                max_tuples=8_000_000,
            )
        except BudgetTooSmallError:
            return 0.0
        return result.service_rate

    points = grid(name)
    rates = [rate(point) for point in points]
    best = int(np.argmax(rates))
    choice = dict(tune(name, situation, PAPERS, queues=queues).parameters)
    return Judgement(len(points), points[best], rates[best], choice, rate(choice))


def grid(name: str) -> list[dict[str, float]]:
    """Return the points of an algorithm's grid; all knobs of the recipe that have values here are varied."""
    knobs = [knob for knob in ALGORITHMS[name].parameters if knob in VALUES]
    values = [BLOCK_THRESHOLDS if knob == "threshold" and name == "partitioned" else VALUES[knob] for knob in knobs]
    return [dict(zip(knobs, combination, strict=True)) for combination in itertools.product(*values)]
