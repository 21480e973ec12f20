"""Every code block of README.md and docs/*.md works as it is printed, unless it is marked with a reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from doc_pages import REPOSITORY, RUN, SHOWN, Block, blocks_of, stray_marks, user_pages

BLOCKS = [block for page in user_pages() for block in blocks_of(page)]
TO_RUN = [block for block in BLOCKS if block.not_run is None and block.language in RUN]
MARKED = [block for block in BLOCKS if block.not_run is not None]


def _failures(folder: Path) -> dict[str, str | None]:
    """Run all blocks in one process, as a user does who has activated the environment."""
    binaries = Path(sys.executable).parent
    arguments = "--master local[2] --conf spark.ui.enabled=false --conf spark.driver.bindAddress=127.0.0.1"
    arguments += " --conf spark.ui.showConsoleProgress=false --conf spark.sql.shuffle.partitions=2 pyspark-shell"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")},
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{REPOSITORY / 'src'}{os.pathsep}{Path(__file__).parent}",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # starts faster and is soon over
        "PYSPARK_SUBMIT_ARGS": arguments,
    }
    program = Path(__file__).with_name("run_blocks.py")
    done = subprocess.run(
        [sys.executable, str(program), str(folder)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    by_block: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    return by_block


def test_every_block_works_as_it_is_printed(tmp_path: Path) -> None:
    # One test, because all blocks share a process and a Spark session, which take most of the time.
    outcomes = _failures(tmp_path)
    assert sorted(outcomes) == sorted(block.name for block in TO_RUN)
    assert {name: why for name, why in outcomes.items() if why is not None} == {}


def test_the_example_of_the_readme_is_run() -> None:
    assert [block.language for block in TO_RUN if block.page == "README.md"] == ["python"]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_a_block_says_its_language(block: Block) -> None:
    assert block.language in (*RUN, *SHOWN)


@pytest.mark.parametrize("block", MARKED, ids=lambda block: block.name)
def test_a_block_that_is_not_run_says_why(block: Block) -> None:
    assert block.not_run is not None
    assert len(block.not_run.split()) >= 3
    assert block.language in RUN, "only what would be run needs a mark"


def test_no_mark_stands_before_something_else_than_a_block() -> None:
    assert {page.name: stray_marks(page) for page in user_pages() if stray_marks(page)} == {}
