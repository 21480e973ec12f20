"""Files that tell how queries are doing: JSON lines for people and scripts, Prometheus text for scrapers."""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from pathlib import Path

from semistream.core.errors import InvalidSettingError
from semistream.spark.batch_progress import BatchProgress
from semistream.spark.prometheus_metrics import PrometheusMetrics


class JsonLinesFile:
    """A file that gets one flat object a line for each batch."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._prepare()

    def add(self, batch: BatchProgress) -> None:
        """Append a batch; raises OSError if the disk is full."""
        lines = "".join(json.dumps(row) + "\n" for row in batch.rows()).encode()
        file = self._open()
        try:
            if os.write(file, lines) < len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        finally:
            os.close(file)

    def _prepare(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            os.close(self._open())
        except OSError as error:
            raise _unwritable("json_lines", self._path, error) from None

    def _open(self) -> int:
        # Opened anew for each batch, so that whoever rotates the file needs to tell nobody; links are not followed.
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)


class PrometheusFile:
    """A text file in Prometheus' format that is always whole: each batch replaces it.

    Counters begin at 0 with each start of the process, which is what scrapers expect.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._metrics = PrometheusMetrics()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write()
        except OSError as error:
            raise _unwritable("prometheus", path, error) from None

    def add(self, batch: BatchProgress) -> None:
        """Count a batch and write the file anew."""
        self._metrics.add(batch)
        self._write()

    def _write(self) -> None:
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}.tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(temporary, flags, 0o644), "w", encoding="utf-8") as file:
                file.write(self._metrics.text())
            temporary.replace(self._path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise


def _unwritable(key: str, path: Path, error: OSError) -> InvalidSettingError:
    why = (error.strerror or str(error)).lower()
    return InvalidSettingError(f"[statistics] {key} cannot be written to {path} ({why}): name another file.")
