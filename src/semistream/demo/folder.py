"""The folder that a demo writes to, and may replace only if an earlier demo made it."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from semistream.core.errors import ConcurrentWriteError, InvalidSettingError
from semistream.spark.spark_session import CheckpointLock

_MARK = ".semistream-demo"
_MARK_TEXT = b"Made by semistream demo, which replaces what it wrote here when it runs again.\n"


class DemoFolder:
    """The places of all that a demo writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.products = path / "products.parquet"
        self.master = path / "products"
        self.pipeline = path / "pipeline.toml"
        self.checkpoint = path / "state"
        self.warehouse = path / "warehouse"
        self.statistics = path / "batches.jsonl"
        self.page = path / "report.html"
        self._unseen = path / ".gitignore"

    @classmethod
    @contextmanager
    def claimed(cls, path: Path) -> Iterator[DemoFolder]:
        """Give the folder, made if need be, to one demo alone; raises an error if others have put files there."""
        folder = cls(Path(os.path.abspath(path)))  # noqa: PTH100 - links must stay
        mark = folder._marked()
        try:
            try:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConcurrentWriteError(
                    f"Another demo is writing to {folder.path}: wait for it, or name another folder."
                ) from None
            yield folder
        finally:
            os.close(mark)

    def clear(self) -> None:
        """Remove what an earlier demo has written, and nothing else."""
        # Whoever runs the pipeline of that demo holds this lock.
        with CheckpointLock(self.checkpoint):
            for place in (
                *(self.products, self.master, self.pipeline, self.warehouse, self.statistics, self.page),
                *(self._unseen, self.checkpoint),
            ):
                if place.is_dir() and not place.is_symlink():
                    shutil.rmtree(place)
                else:
                    place.unlink(missing_ok=True)
        # A demo that is run in a clone must not show up in its version control.
        self._unseen.write_text("*\n")

    def _marked(self) -> int:
        """Return the open file that says that the folder is a demo's; made only in a folder without anything else."""
        mark = self.path / _MARK
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if any(self.path.iterdir()):
                file = os.open(mark, flags)
            else:
                file = os.open(mark, flags | os.O_CREAT, 0o644)
                os.write(file, _MARK_TEXT)
        except OSError as error:
            if self.path.is_dir() and os.access(self.path, os.W_OK | os.X_OK):
                raise self._foreign() from None
            why = (error.strerror or str(error)).lower()
            raise InvalidSettingError(f"{self.path} cannot be written ({why}): name another folder.") from None
        if os.pread(file, len(_MARK_TEXT) + 1, 0) != _MARK_TEXT:
            os.close(file)
            raise self._foreign()
        return file

    def _foreign(self) -> InvalidSettingError:
        return InvalidSettingError(
            f"{self.path} holds files that the demo did not write and will not touch: name another folder, or empty it."
        )
