"""Counts the files of a source that no micro-batch has taken yet, which Spark does not tell."""

from __future__ import annotations

import fnmatch
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

_SECONDS_BETWEEN_LOOKS = 2.0
_HIDDEN = ("_", ".")


class WaitingFiles:
    """The files below a folder that the log of a source does not name.

    The log is read as it grows. A look at the folder costs a listing, so that it is taken at most every two seconds.
    """

    def __init__(
        self, folder: Path, log: Path, *, name_filter: str = "*", now: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = folder
        self._log = log
        self._name_filter = name_filter
        self._now = now
        self._next_look = float("-inf")
        self._last_entry = -1
        self._taken: set[str] = set()
        self._counts = (0, 0)

    def count(self) -> tuple[int, int]:
        """Return how many files wait and how many bytes they have."""
        if self._now() >= self._next_look:
            self._next_look = self._now() + _SECONDS_BETWEEN_LOOKS
            self._read_log()
            sizes = dict(_files_below(self._folder, self._name_filter))
            waiting = sizes.keys() - self._taken
            self._taken &= sizes.keys()  # what is gone never comes back
            self._counts = (len(waiting), sum(sizes[name] for name in waiting))
        return self._counts

    def _read_log(self) -> None:
        entries = sorted(self._entries())
        compacted = max((number for number, is_compact, _ in entries if is_compact), default=-1)
        for number, is_compact, path in entries:
            if number > self._last_entry and (number > compacted or (is_compact and number == compacted)):
                self._taken.update(_names_in(path))
        self._last_entry = max((number for number, *_ in entries), default=self._last_entry)

    def _entries(self) -> Iterator[tuple[int, bool, Path]]:
        if not self._log.is_dir():
            return
        for path in self._log.iterdir():
            number, dot, kind = path.name.partition(".")
            if number.isdigit() and (not dot or kind == "compact"):
                yield int(number), bool(dot), path


def _names_in(log: Path) -> Iterator[str]:
    """Yield the files that an entry of the log names: a line with its version, then one object a line."""
    for line in log.read_text().splitlines()[1:]:
        yield unquote(urlparse(json.loads(line)["path"]).path)


def _files_below(folder: Path, name_filter: str) -> Iterator[tuple[str, int]]:
    """Yield the files that Spark would read, with their sizes."""
    with os.scandir(folder.absolute()) as inside:
        for entry in inside:
            if entry.name.startswith(_HIDDEN):
                continue
            try:
                if entry.is_dir():
                    yield from _files_below(Path(entry.path), name_filter)
                elif fnmatch.fnmatch(entry.name, name_filter):
                    yield entry.path, entry.stat().st_size
            except FileNotFoundError:
                continue  # somebody clears up behind the pipeline
