"""Builds whose tasks fail and die at their first attempt, in sessions that repeat them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest


@pytest.mark.parametrize("master", ["local[2,3]", pytest.param("local-cluster[2,1,1024]", marks=pytest.mark.slow)])
def test_attempts_that_fail_or_die_are_repeated_and_leave_one_copy(master: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
    }
    program = [sys.executable, str(Path(__file__).with_name("repeated_build.py")), master, str(tmp_path)]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    content = json.loads(done.stdout.splitlines()[-1])
    assert (content["rows"], content["files"], content["version"]) == (30_000, 3, 1)
    assert len(content["names"]) == 3 + 3  # the data files, and the index, the manifest and the lock
    assert content["merged"] == 2
