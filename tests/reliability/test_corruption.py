"""A sample of the campaign of damaged files."""

from __future__ import annotations

from pathlib import Path

import pytest
from corruption import try_damages


@pytest.mark.parametrize("seed", [1, 2])
def test_no_damage_of_a_file_is_silent(tmp_path: Path, seed: int) -> None:
    figures = try_damages(tmp_path, seed, 70)
    assert figures["refused"] > 40
