"""The short version of the races of attempts that keep rows back."""

from __future__ import annotations

from pathlib import Path

from racing_rooms import run


def test_attempts_that_race_let_the_same_rows_leave_and_each_once(tmp_path: Path) -> None:
    figures = run(tmp_path, seed=3, rounds=12)
    assert figures["rows"] == 12 * 400
