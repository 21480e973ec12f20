"""A second pipeline on a checkpoint that is in use is refused, and the first goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from campaign import Case, Figures, Promise
from exactly_once_project import MasterChanges, Project
from pipeline_process import PipelineProcess, newest_finished, wait_until

_SECONDS = 240.0


def run(folder: Path, *, seed: int, starts: int) -> Figures:
    """Start a pipeline, start it again so many times while it works, and account for every row."""
    files = 2 * starts + 2
    project = Project(folder, seed, ids=100 * files, files=files, dead_letters=False)
    changes = MasterChanges(folder / "products", seed, 0.7)
    project.arrive(2)
    first = PipelineProcess(project.file)
    refused_seconds = []
    try:
        wait_until(lambda: newest_finished(project.checkpoint) >= 0, _SECONDS, "the first batch")
        for number in range(starts):
            project.arrive(2)
            started = time.monotonic()
            second = PipelineProcess(project.file, log=folder / f"second-{number}.log")
            try:
                code = second.wait(_SECONDS)
            finally:
                second.end()
            refused_seconds.append(time.monotonic() - started)
            assert code == 1, f"the second pipeline ended with {code}: {second.said()[-2000:]}"
            assert "Another query uses the checkpoint" in second.said(), second.said()[-2000:]
            assert first.exit_code is None, f"the first pipeline has ended: {first.said()[-2000:]}"
        wait_until(lambda: newest_finished(project.checkpoint) >= files - 1, _SECONDS, "the last batch")
        assert first.stop() == 143, first.said()[-2000:]
    finally:
        first.end()
    accounts = project.accounts(changes.versions)
    accounts.check()
    return {"starts": starts, "ids": accounts.rows, "seconds": max(refused_seconds)}


def _cases(seed: int) -> Iterator[Case]:
    yield Case("20 starts", lambda folder: run(folder, seed=seed, starts=20))


def _figure(figures: Sequence[Figures]) -> str:
    starts, ids = (sum(figure[name] for figure in figures) for name in ("starts", "ids"))
    slowest = max(figure["seconds"] for figure in figures)
    return f"{starts} of {starts} starts refused, the slowest in {slowest:.1f} s; {ids:,} ids, 0 missing, 0 extra"


SECOND_PIPELINE = Promise(
    "second-pipeline",
    "A second pipeline on a checkpoint is refused with a named error, and the first goes on",
    _cases,
    _figure,
)
