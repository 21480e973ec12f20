"""What a disk may look like after the power has failed: what was not synced is there, missing or garbled."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from watched_system import WatchedSystem

FileId = int
"""Numbers that are given here: the system uses those of its own again."""


@dataclass
class _Folder:
    """The names of a folder on the disk, and what was done to them since they were last synced."""

    on_disk: dict[str, FileId] = field(default_factory=dict)
    pending: list[dict[str, FileId | None]] = field(default_factory=list)
    """Steps that happen as a whole: names with the files they come to mean, None for those that are removed."""

    def after(self, reached: Iterable[bool]) -> dict[str, FileId]:
        """Return the names if only some of the steps have reached the disk."""
        names: dict[str, FileId | None] = dict(self.on_disk)
        for step, is_done in zip(self.pending, reached, strict=True):
            if is_done:
                names.update(step)
        return {name: file for name, file in names.items() if file is not None}

    @property
    def now(self) -> dict[str, FileId]:
        """The names as every process sees them."""
        return self.after([True] * len(self.pending))


class RecordingSystem(WatchedSystem):
    """Keeps track of what is on the disk for sure below a folder, and can write down what else may be there.

    A file that was written is on the disk as it was at its last sync. Each name that was given or removed since the
    folder was last synced may be there or not, whatever becomes of the others.
    """

    def __init__(self, root: Path, before_each: Callable[[RecordingSystem], None]) -> None:
        self._root = root
        self._before_each = before_each
        self._ids = count(1)
        self._folders: dict[Path, _Folder] = {}
        self._synced: dict[FileId, bytes] = {}
        """What files that were written have had at their last sync."""
        self._unnamed: dict[FileId, bytes] = {}
        """What files had when they lost a name."""
        self._open: dict[int, Path | FileId] = {}
        for folder in [root, *(path for path in root.rglob("*") if path.is_dir())]:
            self._folders[folder] = _Folder({path.name: next(self._ids) for path in folder.iterdir()})

    def before(self, call: str, arguments: tuple[Any, ...]) -> None:
        """Offer a moment to lose the power, and note what the call takes away."""
        self._before_each(self)
        if call in ("unlink", "rename"):
            for path in arguments:
                file = self._id(path)
                if file is not None:
                    self._unnamed[file] = path.read_bytes()
        elif call == "open" and self._id(arguments[0]) is None and arguments[1] & os.O_CREAT:
            self._step(arguments[0].parent, {arguments[0].name: next(self._ids)})
            file = self._id(arguments[0])
            if file is not None:
                self._synced[file] = b""
        elif call in ("write", "write_at"):
            written = self._open.get(arguments[0])
            if isinstance(written, FileId) and written not in self._synced:
                self._synced[written] = Path(f"/proc/self/fd/{arguments[0]}").read_bytes()

    def after(self, call: str, arguments: tuple[Any, ...], result: Any) -> None:
        """Note what was done."""
        if call == "open":
            place = arguments[0] if arguments[0] in self._folders else self._id(arguments[0])
            self._open.pop(result, None)  # not all are closed by a call
            if place is not None:
                self._open[result] = place
        elif call == "close":
            self._open.pop(arguments[0], None)
        elif call == "sync" and arguments[0] in self._open:
            place = self._open[arguments[0]]
            if isinstance(place, FileId):
                self._synced.pop(place, None)
            else:
                self._folders[place] = _Folder(self._folders[place].now)
        elif call == "unlink":
            self._step(arguments[0].parent, {arguments[0].name: None})
        elif call == "link":
            self._step(arguments[1].parent, {arguments[1].name: self._id(arguments[0])})
        elif call == "rename":
            assert arguments[0].parent == arguments[1].parent
            step = {arguments[0].name: None, arguments[1].name: self._id(arguments[0])}
            self._step(arguments[0].parent, step)
        elif call == "make_directory":
            self._step(arguments[0].parent, {arguments[0].name: next(self._ids)})
            self._folders[arguments[0]] = _Folder()

    def write_down(self, target: Path, generator: np.random.Generator) -> None:
        """Make a folder that is what the disk may hold if the power fails now."""
        self._write_folder(self._root, target, generator, float(generator.choice([0.0, 0.3, 0.5, 0.7, 1.0])))

    def _write_folder(self, folder: Path, target: Path, generator: np.random.Generator, share: float) -> None:
        target.mkdir()
        known = self._folders[folder]
        reached = generator.random(len(known.pending)) < share
        named = {file: name for name, file in known.now.items()}
        for name, file in known.after(reached.tolist()).items():
            if folder / name in self._folders:
                self._write_folder(folder / name, target / name, generator, share)
                continue
            content = (folder / named[file]).read_bytes() if file in named else self._unnamed[file]
            (target / name).write_bytes(self._survived(file, content, generator))

    def _survived(self, file: FileId, content: bytes, generator: np.random.Generator) -> bytes:
        if file not in self._synced:
            return content
        synced = self._synced[file]
        rest = content[len(synced) :] if content[: len(synced)] == synced else content
        return [
            synced,
            content,
            synced + rest[: generator.integers(len(rest) + 1)],
            synced + bytes(len(rest)),
            synced + generator.bytes(len(rest)),
        ][generator.integers(5)]

    def _id(self, path: Path) -> FileId | None:
        folder = self._folders.get(path.parent)
        return folder.now.get(path.name) if folder is not None and path not in self._folders else None

    def _step(self, folder: Path, names: dict[str, FileId | None]) -> None:
        if folder in self._folders:
            self._folders[folder].pending.append(names)
