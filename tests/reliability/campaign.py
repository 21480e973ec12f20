"""The campaign: promises of the product, each tried by many cases that are made from a seed and can be run again.

A case breaks its promise by raising; what it returns are figures. Finished cases are remembered in a file for each
promise, one line of JSON a case, so that a campaign that was stopped goes on. Every case can be run alone by its name.
"""

from __future__ import annotations

import json
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Figures = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One trial of a promise."""

    name: str
    """Unique for its promise, and the same in every run with the same seed."""
    run: Callable[[Path], Figures]
    """Tries the promise in an empty folder, raises an error if it is broken, and returns what was measured."""


@dataclass(frozen=True)
class Promise:
    """What users may rely on, and how it is tried."""

    name: str
    sentence: str
    cases: Callable[[int], Iterator[Case]]
    """Makes all cases of a long run from a seed."""
    figure: Callable[[Sequence[Figures]], str]
    """Sums up the figures of all cases that kept the promise."""


@dataclass
class Outcome:
    """What became of a promise."""

    promise: Promise
    kept: list[Figures] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)
    """By the name of the case, the last line of its error."""

    @property
    def case_count(self) -> int:
        """How many cases were run."""
        return len(self.kept) + len(self.broken)


def run_case(case: Case) -> Figures:
    """Run a case in a folder of its own that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="semistream-soak-") as folder:
        return case.run(Path(folder))


def run_promise(promise: Promise, seed: int, results: Path, say: Callable[[str], None] = print) -> Outcome:
    """Run the cases that have not kept the promise in an earlier run, and remember each as soon as it has ended."""
    results.mkdir(parents=True, exist_ok=True)
    path = results / f"{promise.name}-{seed}.jsonl"
    finished = _finished(path)
    outcome = Outcome(promise)
    for case in promise.cases(seed):
        if case.name in finished:
            outcome.kept.append(finished[case.name])
            continue
        started = time.monotonic()
        try:
            figures = dict(run_case(case))
        except Exception as error:
            outcome.broken[case.name] = f"{type(error).__name__}: {error}".splitlines()[0]
            say(f"BROKEN {promise.name}: {case.name} (seed {seed})\n{traceback.format_exc()}")
            continue
        outcome.kept.append(figures)
        with path.open("a") as lines:
            lines.write(json.dumps({"case": case.name, "figures": figures}) + "\n")
        say(f"kept   {promise.name}: {case.name}, {time.monotonic() - started:.1f} s")
    return outcome


def _finished(path: Path) -> dict[str, Figures]:
    if not path.exists():
        return {}
    # A line that a kill has cut off is a case that has to be run again.
    lines = [line for line in path.read_text().splitlines() if line.endswith("}")]
    return {entry["case"]: entry["figures"] for entry in map(json.loads, lines)}


def table_of(outcomes: Sequence[Outcome], seed: int) -> str:
    """Return the outcomes as a table in Markdown."""
    rows = ["| promise | cases | broken | figure |", "|---|---:|---:|---|"]
    for outcome in outcomes:
        figure = outcome.promise.figure(outcome.kept) if outcome.kept else ""
        rows.append(f"| {outcome.promise.sentence} | {outcome.case_count:,} | {len(outcome.broken)} | {figure} |")
    broken = [f"{o.promise.name}: {name}: {error}" for o in outcomes for name, error in o.broken.items()]
    return "\n".join([*rows, "", f"Seed {seed}.", *broken])
