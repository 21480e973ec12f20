"""Progress of long work on standard error: a bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

_SECONDS_BETWEEN_LINES = 4.0
_SECONDS_BETWEEN_REDRAWS = 0.1


class Progress(ABC):
    """Is told what is being done and how far it has come; cheap enough to be told very often."""

    def __init__(self, pause_seconds: float) -> None:
        self._pause_seconds = pause_seconds
        self._what = ""
        self._next = 0.0

    def update(self, what: str, done: int, total: int | None) -> None:
        """Say that of `total` (None if nobody knows) `done` are done."""
        now = time.perf_counter()
        if now < self._next and what == self._what:
            return
        self._what = what
        if self._show(what, done, total, due=now >= self._next):
            self._next = now + self._pause_seconds

    @abstractmethod
    def _show(self, what: str, done: int, total: int | None, *, due: bool) -> bool:
        """Show the progress, and say whether anything was shown; `due` is false if only the work has changed."""


@contextmanager
def progress() -> Iterator[Progress]:
    """Show progress while the block runs; nothing of a bar remains afterwards."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True, expand=True) as bars:
        yield _Bar(bars)


class _Bar(Progress):
    def __init__(self, bars: object) -> None:
        super().__init__(_SECONDS_BETWEEN_REDRAWS)
        from rich.progress import Progress as Bars

        assert isinstance(bars, Bars)
        self._bars = bars
        self._task = bars.add_task("starting", total=None, count="")
        self._shown = ""

    def _show(self, what: str, done: int, total: int | None, *, due: bool) -> bool:
        del due
        if what != self._shown:
            self._shown = what
            self._bars.reset(self._task, total=total, description=what)
        count = f"{done:,} of {total:,}" if total else f"{done:,}" if done else ""
        self._bars.update(self._task, completed=done, total=total, count=count)
        return True


class _Lines(Progress):
    def __init__(self) -> None:
        super().__init__(_SECONDS_BETWEEN_LINES)
        self._next = time.perf_counter() + _SECONDS_BETWEEN_LINES

    def _show(self, what: str, done: int, total: int | None, *, due: bool) -> bool:
        if due:
            count = f": {done:,} of {total:,}" if total else f": {done:,}" if done else ""
            print(f"{what}{count}", file=sys.stderr, flush=True)
        return due
