"""`enrich` on Spark Connect, where the driver is another process and has no SparkContext here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc", reason="Spark Connect needs more packages")
pytest.importorskip("zstandard", reason="Spark Connect needs more packages")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what a program that ran in a session of its own has checked."""
    program = Path(__file__).with_name("enrich_connect_session.py")
    folder = tmp_path_factory.mktemp("connect")
    finished = subprocess.run(
        [sys.executable, str(program), str(folder)], capture_output=True, text=True, timeout=1200, check=False
    )
    assert finished.returncode == 0, finished.stderr[-4000:]
    content: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return content


def test_batches_and_streams_are_enriched_and_pinned(checks: dict[str, Any]) -> None:
    assert checks["batch"]
    assert checks["shuffled"]
    assert checks["stream"]
    assert checks["pinned"]


def test_watermarks_travel_through(checks: dict[str, Any]) -> None:
    assert checks["closed windows"] > 40


def test_actions_that_give_their_pins_are_enriched_and_pinned(checks: dict[str, Any]) -> None:
    assert checks["actions"] == {"0": 300, "1": 300, "2": 300}
    assert checks["pins of actions"] == ["0.json", "1.json", "2.json"]


def test_statistics_reach_the_progress_of_a_query(checks: dict[str, Any]) -> None:
    assert checks["statistics"] == [300, 300, 300]
