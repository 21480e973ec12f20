"""Every file operation of every command fails once, is interrupted once, and once the power fails before it."""

from __future__ import annotations

import gc
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
from campaign import Case, Figures, Promise
from power_loss import RecordingSystem
from table_commands import COMMANDS, Command, Sample, check_afterwards, sample
from watched_system import WAYS, CountingSystem, FailingSystem, HastySystem, Killed

from semistream.core.errors import SemistreamError
from semistream.core.file_system import installed

_POWER_LOSSES_AT_A_CALL = 4
_BYTECODES_OF_A_CASE = 60
_BYTECODE_CASES = 5
_TRACED = ("store/paged", "store/places", "spark/saved_cache")


@installed(HastySystem())
def try_failures(
    folder: Path, command: Command, way: str, chosen: Callable[[int], Sequence[int]] | None = None
) -> Figures:
    """Let a command fail at each of its calls, or at those chosen of so many, and check what is left."""
    before = _sample(folder, command)
    calls = _call_count(before, command, folder / "counted")
    outcomes: Counter[str] = Counter()
    for at in range(1, calls + 1) if chosen is None else chosen(calls):
        trial = before.copied(folder / "trial")
        failing = FailingSystem(way, at)
        is_done = _run(command, trial, lambda failing=failing: installed(failing))
        try:
            outcomes[check_afterwards(command, before, trial.path, is_done=is_done)] += 1
        except BaseException as error:
            error.add_note(f"{command.name}: {failing.struck or way} at call {at} of {calls}")
            raise
        _remove(trial.path)
    return {"trials": sum(outcomes.values()), **outcomes}


@installed(HastySystem())
def try_power_losses(
    folder: Path, command: Command, seed: int, losses_at_a_call: int = _POWER_LOSSES_AT_A_CALL, every: int = 1
) -> Figures:
    """Let the power fail before each call of a command, or every so many, and check what the disk may hold then."""
    before = _sample(folder, command)
    generator = np.random.default_rng(seed)
    trial = Sample(folder / "trial" / "t", before.versions)
    trial.path.parent.mkdir()
    before.copied(trial.path)
    moments: list[Path] = []
    calls = 0

    def lose_power(recording: RecordingSystem) -> None:
        nonlocal calls
        calls += 1
        if calls % every:
            return
        for _ in range(losses_at_a_call):
            moments.append(folder / f"moment-{calls}-{len(moments)}")
            recording.write_down(moments[-1], generator)

    recording = RecordingSystem(trial.path.parent, lose_power)
    with installed(recording):
        command.run(trial.table)
    lose_power(recording)
    outcomes: Counter[str] = Counter()
    for moment in moments:
        is_last = moment.name.startswith(f"moment-{calls}-")
        kept = folder / "kept"
        _remove(kept)
        shutil.copytree(moment, kept)
        try:
            outcomes[check_afterwards(command, before, moment / "t", is_done=is_last)] += 1
        except BaseException as error:
            error.add_note(f"{command.name}: {moment.name} of {calls}; as it was in {kept}")
            raise
        shutil.rmtree(moment)
    return {"trials": sum(outcomes.values()), **outcomes}


@installed(HastySystem())
def try_interrupts(folder: Path, command: Command, seed: int, trials: int = _BYTECODES_OF_A_CASE) -> Figures:
    """Interrupt a command at random bytecodes of what handles files, and check what is left."""
    before = _sample(folder, command)
    generator = np.random.default_rng(seed)
    counting = _Interrupting(0)
    _run(command, before.copied(folder / "counted"), lambda: counting)
    outcomes: Counter[str] = Counter()
    for at in generator.integers(1, counting.count + 1, trials).tolist():
        trial = before.copied(folder / "trial")
        interrupting = _Interrupting(at)
        is_done = _run(command, trial, lambda interrupting=interrupting: interrupting)
        gc.collect()  # a lock whose interrupt came before the block that frees it goes with its object
        try:
            outcomes[check_afterwards(command, before, trial.path, is_done=is_done)] += 1
        except BaseException as error:
            error.add_note(f"{command.name}: interrupted at bytecode {at} of {counting.count}, {interrupting.place}")
            raise
        _remove(trial.path)
    return {"trials": sum(outcomes.values()), **outcomes}


class _Interrupting:
    """Raises KeyboardInterrupt at one of the bytecodes of the modules that handle files."""

    def __init__(self, at: int) -> None:
        self.count = 0
        self.place = ""
        self._at = at
        self._known: dict[CodeType, bool] = {}

    def __enter__(self) -> None:
        sys.settrace(self._entered)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _entered(self, frame: FrameType, event: str, argument: Any) -> Any:
        del event, argument
        code = frame.f_code
        if code not in self._known:
            self._known[code] = any(part in code.co_filename for part in _TRACED)
        if not self._known[code]:
            return None
        frame.f_trace_opcodes = True
        return self._stepped

    def _stepped(self, frame: FrameType, event: str, argument: Any) -> Any:
        del argument
        if event == "opcode":
            self.count += 1
            if self.count == self._at:
                self.place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self._stepped


def _sample(folder: Path, command: Command) -> Sample:
    return Sample(folder / "nothing", {}) if command.from_nothing else sample(folder / "sample")


def _call_count(before: Sample, command: Command, path: Path) -> int:
    counting = CountingSystem()
    with installed(counting):
        command.run(before.copied(path).table)
    return counting.count


def _run(command: Command, trial: Sample, around: Callable[[], Any]) -> bool:
    """Run a command and say whether it has ended well."""
    try:
        with around():
            command.run(trial.table)
    except (OSError, SemistreamError, KeyboardInterrupt, SystemExit, Killed):
        return False
    return True


def _remove(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path)


def cases(seed: int) -> Iterator[Case]:
    """Make all cases: each command with each way to fail, with power losses, and with interrupts anywhere."""
    for command in COMMANDS.values():
        for way in WAYS:
            yield Case(f"{command.name}, {way}", lambda folder, c=command, w=way: try_failures(folder, c, w))
        yield Case(f"{command.name}, power", lambda folder, c=command: try_power_losses(folder, c, seed))
        for number in range(_BYTECODE_CASES):
            place = seed * 1000 + number
            yield Case(
                f"{command.name}, bytecodes {number}", lambda folder, c=command, p=place: try_interrupts(folder, c, p)
            )


def figure(all_figures: Sequence[Figures]) -> str:
    """Sum up."""
    trials, new = (sum(figures.get(name, 0) for figures in all_figures) for name in ("trials", "new"))
    return f"{trials:,} failures, interrupts, kills and power losses; {new:,} after the commit; 0 tables damaged"


PROMISE = Promise(
    "file-operations",
    "Whatever file operation fails, is interrupted or is lost, the table is old or new and whole, and can be used",
    cases,
    figure,
)
