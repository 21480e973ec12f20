"""The short version of races between attempts."""

from __future__ import annotations

from pathlib import Path

from racing_attempts import run


def test_two_attempts_of_one_task_read_one_version_and_give_the_same_rows(tmp_path: Path) -> None:
    assert run(tmp_path, seed=1, rounds=20)["versions"] > 1
