"""The short version of second pipelines."""

from __future__ import annotations

from pathlib import Path

import pytest
from second_pipeline import run


@pytest.mark.xdist_group("pipelines")
def test_a_second_pipeline_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    assert run(tmp_path, seed=1, starts=1)["ids"] == 400
