"""The tuner's choice, measured, against the best point of grids that know nothing of its model."""

from __future__ import annotations

import pytest
from measured_grid import grid, judged

from semistream.algorithms.registry import ALGORITHMS

TUNED = [name for name in ALGORITHMS if len(grid(name)) > 1 and name != "demandjoin"]
"""All algorithms with knobs, but for the one that tunes itself while it runs."""
ROUGH = {"hybridjoin-pq": 0.04, "cachejoin-pq": 0.04}
"""Where the model is too rough for two percent."""


def test_every_algorithm_with_knobs_has_a_grid() -> None:
    without = {name for name in ALGORITHMS if name not in TUNED}
    assert without == {"inlj", "oracle", "demandjoin"}


@pytest.mark.slow
@pytest.mark.parametrize("ranks", ["sorted", "shuffled"])
@pytest.mark.parametrize("exponent", [0.5, 1.0])
@pytest.mark.parametrize("name", TUNED)
def test_the_tuners_choice_is_within_two_percent_of_the_best_of_an_independent_grid(
    name: str, exponent: float, ranks: str
) -> None:
    verdict = judged(name, exponent, ranks)
    assert verdict.behind <= ROUGH.get(name, 0.02), verdict
