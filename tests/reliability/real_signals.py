"""Processes that change a table are sent real signals at random times.

Run as a program it is such a process: it builds, merges, compacts, restores and vacuums, and tells what it has done.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from campaign import Case, Figures, Promise

from semistream.core.errors import SemistreamError
from semistream.master_table import MasterTable
from semistream.store.paged.versions import manifest
from semistream.store.places.local_folder import LocalFolder

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
CASES = 4
SIGNALS_OF_A_CASE = 15
KEYS = 600
_MAX_WAIT_SECONDS = 0.4


def rows(number: int) -> pa.Table:
    """Return the rows of a state: all of them have its number."""
    return pa.table({"k": np.arange(KEYS), "number": np.full(KEYS, number), "text": ["x" * 30] * KEYS})


def number_in(table: MasterTable, version: int | None = None) -> tuple[int, int]:
    """Return a version and the number that all its rows have."""
    with table.open(version) as store:
        pages = store.read(np.array([0]), np.array([store.page_count - 1]))
        numbers = set(pages.take(np.arange(len(pages.codes)), ["number"]).column(0).to_pylist())
        assert len(numbers) == 1, f"version {store.version} is a mixture of {numbers}"
        assert len(pages.codes) == KEYS
        return store.version, numbers.pop()


def change_for_ever(path: Path, seed: int) -> None:
    """Change the table again and again, and print each version that is there, with its number."""
    from semistream.cli import interruption

    interruption.install()
    generator = np.random.default_rng(seed)
    table = MasterTable(path)
    _, number = number_in(table)
    print("ready", flush=True)
    while True:
        number += 1
        work = generator.choice(["build", "merge", "merge", "merge", "compact", "restore", "vacuum"])
        if work == "build":
            MasterTable.build(rows(number), path, "k", page_bytes=512)
        elif work == "merge":
            table.merge(rows(number))
        elif work == "compact":
            table.compact()
        elif work == "restore":
            table.restore(int(generator.choice(manifest.versions(LocalFolder(path)))))
        else:
            table.vacuum(int(generator.integers(1, 3)), keep_for=0)
        print(*number_in(table), flush=True)


def interrupt(folder: Path, sent: signal.Signals, seed: int, trials: int = SIGNALS_OF_A_CASE) -> Figures:
    """Send a signal to one process after the other, and check the table each time."""
    table = MasterTable.build(rows(0), folder / "t", "k", page_bytes=512)
    generator = np.random.default_rng(seed)
    commits = 0
    for trial in range(trials):
        command = [sys.executable, __file__, str(table.path), str(seed * 1000 + trial)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate()[1]
            time.sleep(float(generator.random()) * _MAX_WAIT_SECONDS)
            process.send_signal(sent)
            output, errors = process.communicate(timeout=60)
        assert process.returncode in (-sent, 128 + sent, 130, 1), f"{process.returncode}: {errors}"
        done = [tuple(map(int, line.split())) for line in output.splitlines() if len(line.split()) == 2]
        commits += len(done)
        for version in manifest.versions(LocalFolder(table.path)):
            table.verify(version)
            number_in(table, version)
        version, number = number_in(table)
        if done:
            assert (version, number) == done[-1] or version > done[-1][0], f"{done[-1]} is lost, {version} is newest"
        try:
            assert table.merge(rows(number + 1)) > version
        except SemistreamError as error:
            error.add_note(errors)
            raise
        assert number_in(table)[1] == number + 1
    return {"signals": trials, "commands": commits}


def cases(seed: int) -> Iterator[Case]:
    """Make cases of some signals each."""
    for sent in SIGNALS:
        for number in range(CASES):
            place = seed * 100 + number
            yield Case(f"{sent.name} {number}", lambda folder, sent=sent, place=place: interrupt(folder, sent, place))


def figure(all_figures: Sequence[Figures]) -> str:
    """Sum up."""
    signals, commands = (sum(figures[name] for figures in all_figures) for name in ("signals", "commands"))
    return f"{signals:,} signals during {commands:,} commands; 0 tables damaged, 0 commits lost"


PROMISE = Promise(
    "real-signals",
    "A process that is interrupted or killed while it changes a table leaves the old or the new version, whole",
    cases,
    figure,
)

if __name__ == "__main__":
    change_for_ever(Path(sys.argv[1]), int(sys.argv[2]))
