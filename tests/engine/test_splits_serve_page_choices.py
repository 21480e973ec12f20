"""A split that does not make room for what the page choice needs is an error, and not a join that takes more memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.budget import MemoryBudget
from semistream.core.clock import ModelClock
from semistream.core.costs import SSD
from semistream.core.errors import InvalidSettingError
from semistream.engine.assembly import Assembly
from semistream.engine.phases.stream_input import KeyInput
from semistream.engine.recipe import Recipe
from semistream.engine.sizing.split import Split
from semistream.policies.page_choice import AtPosition, OldestAndYoungest, OldestWaiting
from semistream.store.memory import MemoryStore


def started(recipe: Recipe) -> None:
    clock = ModelClock(SSD)
    assembly = Assembly(recipe, MemoryStore.of_codes(10_000, row_bytes=120), MemoryBudget("2MB"), clock)
    chunk = (np.arange(10, dtype=np.int64), None)
    assembly.start(KeyInput(iter([chunk]), clock))


@pytest.mark.parametrize(
    ("choice", "split", "message"),
    [
        (AtPosition(0.5), Split(), "positions=False.*AtPosition needs positions=True"),
        (OldestWaiting(), Split(positions=True), "positions=True.*OldestWaiting needs positions=False"),
        (OldestAndYoungest(), Split(), "buffers=1.*OldestAndYoungest needs buffers=2"),
        (OldestWaiting(), Split(buffers=2), "buffers=2.*OldestWaiting needs buffers=1"),
    ],
)
def test_a_split_that_does_not_fit_its_page_choice_is_refused(choice: object, split: Split, message: str) -> None:
    recipe = replace(ALGORITHMS["hybridjoin"], page_choice=lambda _: choice, split=lambda _: split)
    with pytest.raises(InvalidSettingError, match=message):
        started(recipe)


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_the_splits_of_the_family_fit(algorithm: str) -> None:
    started(ALGORITHMS[algorithm])
