"""`enrich` in other sessions than that of the tests: tasks are tried again, executors are processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


def run_session(url: str, folder: Path, *options: str) -> dict[str, Any]:
    program = Path(__file__).with_name("enrich_other_session.py")
    finished = subprocess.run(
        [sys.executable, str(program), url, str(folder), *options],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-4000:]
    content: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return content


def test_a_task_whose_worker_was_killed_is_tried_again_and_no_row_is_lost_or_double(tmp_path: Path) -> None:
    report = run_session("local[2,4]", tmp_path, "kill")
    assert report["killed"]
    assert report["equal"]
    assert report["tuples_in"] == report["rows_out"] == [600] * 3, "the failed attempt is not counted"


def test_executors_in_other_processes_give_the_same_rows(tmp_path: Path) -> None:
    report = run_session("local-cluster[2,1,1024]", tmp_path)
    assert report["equal"]
    assert report["rows"] == sum(report["rows_out"]) == 1800
