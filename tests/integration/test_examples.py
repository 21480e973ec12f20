"""Every example runs as users run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SAYS = {
    "compare_algorithms.py": "cachejoin",
    "enrich_sales.py": "500,000 sales were enriched",
    "flights.py": "284,170 of 336,776 flights have a known plane",
    "late_rows.py": "'name': 'bicycle'",
    "merge_master.py": "Version 1 still says: {1: 10.0, 2: 10.0, 3: 10.0, 10001: None}",
}


def test_every_example_is_known() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(SAYS)


@pytest.mark.parametrize("name", sorted(SAYS))
def test_example_runs_and_says_what_it_should(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    # The first of them may have to compile, and says so.
    assert [line for line in done.stderr.splitlines() if "compiles its kernels" not in line] == []
    assert SAYS[name] in done.stdout
    assert list(tmp_path.iterdir()) == []
