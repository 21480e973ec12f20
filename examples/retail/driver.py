"""`semistream run` in a process of its own, which can be killed with all that it has started."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

_SECONDS_TO_STOP = 45.0
_PAGE = re.compile(r"Live page: (\S+)")


class Driver:
    """The pipeline's driver, its Java and its Python workers."""

    def __init__(self, file: Path, log: Path, environment: dict[str, str]) -> None:
        self._log = log
        self._said_before = log.stat().st_size if log.exists() else 0
        command = [sys.executable, "-m", "semistream", "run", str(file)]
        with log.open("ab") as said:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment, start_new_session=True
            )
        self._children: dict[int, psutil.Process] = {}

    @property
    def has_ended(self) -> bool:
        """Whether the driver runs no longer."""
        self._look()
        return self._process.poll() is not None

    @property
    def page(self) -> str | None:
        """Where the live page is, as soon as the driver says so."""
        found = _PAGE.search(self.said())
        return found[1] if found else None

    def said(self) -> str:
        """Return what the driver has said."""
        with self._log.open("rb") as log:
            log.seek(self._said_before)
            return log.read().decode(errors="replace")

    def kill(self) -> None:
        """Kill the driver and whatever it has started by SIGKILL, and wait until all are gone."""
        self._look()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for child in self._children.values():
            with suppress(psutil.NoSuchProcess):  # it knows by the time of its start if the number was used again
                child.kill()
        psutil.wait_procs(list(self._children.values()), timeout=_SECONDS_TO_STOP)

    def stop(self) -> int:
        """Ask the driver to end after its micro-batch, and return its exit code; kill it if it takes too long."""
        self._look()
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        end = time.monotonic() + _SECONDS_TO_STOP
        while self._process.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
        self.kill()
        return self._process.returncode

    def _look(self) -> None:
        with suppress(psutil.NoSuchProcess):
            family = psutil.Process(self._process.pid).children(recursive=True)
            self._children.update({child.pid: child for child in family})
