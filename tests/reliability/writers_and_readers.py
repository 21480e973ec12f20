"""Two writers, a vacuum and readers at one table at the same time, each a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from campaign import Case, Figures, Promise

from semistream.core.errors import ConcurrentWriteError
from semistream.master_table import MasterTable
from semistream.store.paged.versions import manifest
from semistream.store.places.local_folder import LocalFolder

WRITERS = 2
COMMITS = 500
READERS = 2
KEYS = 20
"""How many rows a commit changes; they all get its number."""
_OTHERS = 3000
_MAX_FILES = 70
_MAX_DESCRIPTORS = 200
_PATIENCE_SECONDS = 3000.0


def _rows(writer: int, number: int) -> pa.Table:
    """Return the rows of a commit: they are spread over the table, and those of both writers stand side by side."""
    keys = np.arange(KEYS, dtype=np.int64) * (_OTHERS // KEYS) * WRITERS + writer
    return pa.table({"k": keys, "writer": np.full(KEYS, writer), "number": np.full(KEYS, number)})


def _numbers(table: MasterTable, version: int | None = None) -> tuple[int, list[list[int]]]:
    """Return the version and for each writer the numbers that its rows have."""
    with table.open(version) as store:
        pages = store.read(np.array([0]), np.array([store.page_count - 1]))
        rows = pages.take(np.arange(len(pages.codes)), ["writer", "number"])
        writers, numbers = (rows.column(place).to_numpy() for place in range(2))
        assert (writers < 0).sum() == _OTHERS
        assert len(writers) == _OTHERS + WRITERS * KEYS
        return store.version, [numbers[writers == writer].tolist() for writer in range(WRITERS)]


def _write(path: Path, writer: int, commits: int, reports: Queue[Any]) -> None:
    table = MasterTable(path)
    conflicts = 0
    versions: list[int] = []
    generator = np.random.default_rng(writer)
    for number in range(1, commits + 1):
        while True:
            try:
                versions.append(table.merge(_rows(writer, number)))
                break
            except ConcurrentWriteError:
                conflicts += 1
                time.sleep(float(generator.random()) * 0.01)
    reports.put({"writer": writer, "conflicts": conflicts, "versions": versions})


def _vacuum(path: Path, stop: Any, reports: Queue[Any]) -> None:
    table = MasterTable(path)
    removed = rounds = 0
    while not stop.is_set():
        try:
            removed += len(table.vacuum(1 + rounds % 3, keep_for=0)["versions"])
            rounds += 1
        except ConcurrentWriteError:
            pass
        time.sleep(0.02)
    reports.put({"removed": removed, "rounds": rounds})


def _read(path: Path, stop: Any, reports: Queue[Any]) -> None:
    table = MasterTable(path)
    last = [0] * WRITERS
    last_version = reads = descriptors = 0
    while not stop.is_set():
        version, numbers = _numbers(table)
        assert version >= last_version, f"version {version} came after {last_version}"
        for writer in range(WRITERS):
            assert len(set(numbers[writer])) == 1, f"version {version} has a part of a commit: {numbers[writer]}"
            assert numbers[writer][0] >= last[writer], f"version {version} has lost a commit of writer {writer}"
            last[writer] = numbers[writer][0]
        last_version, reads = version, reads + 1
        descriptors = max(descriptors, len(os.listdir("/proc/self/fd")))  # noqa: PTH208
    reports.put({"reads": reads, "descriptors": descriptors})


def _guarded(work: Callable[..., None], reports: Queue[Any], *arguments: Any) -> None:
    try:
        work(*arguments, reports)
    except BaseException as error:
        reports.put({"fault": f"{work.__name__}: {type(error).__name__}: {error}"})


def race(folder: Path, commits: int) -> Figures:
    """Let all of them work until the writers have done their commits, and check what is there then."""
    table = MasterTable.build(
        pa.table(
            {
                "k": np.concatenate([np.arange(_OTHERS) + 10**6, _rows(0, 0)["k"], _rows(1, 0)["k"]]),
                "writer": np.concatenate([np.full(_OTHERS, -1), np.zeros(KEYS, np.int64), np.ones(KEYS, np.int64)]),
                "number": np.zeros(_OTHERS + WRITERS * KEYS, np.int64),
            }
        ),
        folder / "t",
        "k",
        page_bytes=512,
    )
    spawning = multiprocessing.get_context("spawn")
    reports: Queue[Any] = spawning.Queue()
    stop = spawning.Event()

    def started(work: Callable[..., None], *arguments: Any) -> Any:
        process = spawning.Process(target=_guarded, args=(work, reports, table.path, *arguments), daemon=True)
        process.start()
        return process

    others = [started(_read, stop) for _ in range(READERS)] + [started(_vacuum, stop)]
    writers = [started(_write, writer, commits) for writer in range(WRITERS)]
    figures: dict[str, Any] = {}
    versions: list[int] = []
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        for place in range(len(writers) + len(others)):
            if place == len(writers):
                stop.set()
            report = reports.get(timeout=max(1.0, deadline - time.monotonic()))
            assert "fault" not in report, report["fault"]
            versions += report.pop("versions", [])
            for name, value in report.items():
                figures[name] = (
                    max(figures.get(name, 0), value) if name == "descriptors" else (figures.get(name, 0) + value)
                )
    finally:
        stop.set()
        for process in writers + others:
            process.join(20)
            process.kill()
    assert sorted(versions) == list(range(2, 2 + WRITERS * commits)), "a number is missing or was used twice"
    assert _numbers(table)[1] == [[commits] * KEYS] * WRITERS, "a commit is lost"
    assert figures["descriptors"] < _MAX_DESCRIPTORS
    files = len(table.info()["files"])
    assert files <= _MAX_FILES, f"{files} files after {WRITERS * commits} merges"
    table.vacuum(keep_for=0)
    assert manifest.versions(LocalFolder(table.path)) == [1 + WRITERS * commits]
    table.verify()
    left = len(list(table.path.iterdir()))
    assert left <= files + 3
    return {"commits": WRITERS * commits, "files": files, **figures}


def cases(seed: int) -> Iterator[Case]:
    """Make the one case there is; processes take turns as the system lets them, whatever the seed."""
    yield Case(f"{WRITERS} writers of {COMMITS} commits ({seed})", lambda folder: race(folder, COMMITS))


def figure(all_figures: Sequence[Figures]) -> str:
    """Sum up."""
    total = {name: sum(figures[name] for figures in all_figures) for name in ("commits", "reads", "removed")}
    files, descriptors = (max(figures[name] for figures in all_figures) for name in ("files", "descriptors"))
    return (
        f"{total['commits']:,} commits, {total['reads']:,} reads of whole versions, {total['removed']:,} versions "
        f"vacuumed meanwhile; at most {files} files and {descriptors} descriptors; 0 commits lost, 0 wrong rows"
    )


PROMISE = Promise(
    "writers-and-readers",
    "With two writers, a vacuum and readers at once no commit is lost and no wrong row is read",
    cases,
    figure,
)
