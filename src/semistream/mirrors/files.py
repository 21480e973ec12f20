"""Files as a source: Parquet, CSV or Arrow files of a folder, which are compared with the mirror when they change."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.core.local_paths import local_path_of
from semistream.mirrors.chosen_columns import chosen
from semistream.mirrors.source_description import Circumstances, MirrorSource, Position, SourceRows, names_of
from semistream.store.tables import open_source

_SETTLED_NANOSECONDS = 2_000_000_000
_HIDDEN = (".", "_")


@dataclass(frozen=True, init=False)
class FileSource(MirrorSource):
    """Parquet, CSV or Arrow files that a mirror is kept in step with; a refresh reads them all if any has changed.

    Args:
        path: A file, a folder of files, or a list of files.
        columns: The columns to mirror; by default all, also those that are added later.
    """

    kind = "files"
    path_settings = ("path",)
    paths: tuple[str, ...]
    columns: tuple[str, ...] | None

    def __init__(
        self, path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], columns: Sequence[str] | None = None
    ) -> None:
        given = [path] if isinstance(path, (str, os.PathLike)) else list(path)
        if not given:
            raise InvalidSettingError("A file source needs a path: give that of a file or folder.")
        absolute = tuple(str(local_path_of(one, "Files").absolute()) for one in given)
        object.__setattr__(self, "paths", absolute)
        object.__setattr__(self, "columns", names_of(columns))

    def described(self) -> dict[str, Any]:
        """Return the paths, and the columns if they were chosen."""
        return {"path": list(self.paths), **({} if self.columns is None else {"columns": list(self.columns)})}

    @classmethod
    def of_address(cls, address: str) -> FileSource:
        """Return the files at a path, also as file:///…."""
        return cls(address)

    @contextmanager
    def all_rows(self, circumstances: Circumstances) -> Iterator[SourceRows]:
        """Open all files; they must be the same ones at the end, or nothing is applied."""
        del circumstances
        stamps = self._stamps()
        paths = list(self.paths)
        source = chosen(open_source(paths if len(paths) > 1 else paths[0]), self.columns, "The source")

        def check() -> None:
            if self._stamps() != stamps:
                raise SemistreamError(
                    f"The files at {self.paths[0]} changed while they were read: refresh again when they are complete."
                )

        yield SourceRows(source, source.schema, {"files": _settled(stamps)}, check=check)

    @contextmanager
    def rows_since(self, position: Position, circumstances: Circumstances) -> Iterator[SourceRows | None]:
        """Open all files, unless they are those that the position names."""
        if position.get("files") is not None and position["files"] == self._stamps():
            yield None
            return
        with self.all_rows(circumstances) as rows:
            yield rows

    def _stamps(self) -> list[list[Any]]:
        """Return path, size, time of change and number of each file."""
        files: list[Path] = []
        for path in map(Path, self.paths):
            if not path.exists():
                raise InvalidSettingError(f"There is no file {path}: give the path of Parquet, CSV or Arrow files.")
            files.extend(_files_in(path) if path.is_dir() else [path])
        try:
            statuses = [(file, file.stat()) for file in files]
        except FileNotFoundError as error:
            raise SemistreamError(f"{error.filename} disappeared while the files were listed: refresh again.") from None
        return [[str(file), status.st_size, status.st_mtime_ns, status.st_ino] for file, status in statuses]


def _files_in(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(_HIDDEN) for part in path.relative_to(folder).parts)
    ]


def _settled(stamps: list[list[Any]]) -> list[list[Any]] | None:
    """Return the stamps, or None if a file is so young that a later change might leave its time as it is."""
    youngest = max((stamp[2] for stamp in stamps), default=0)
    return stamps if youngest < time.time_ns() - _SETTLED_NANOSECONDS else None
