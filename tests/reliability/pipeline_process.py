"""Runs `semistream run` in processes of its own, and kills them or their workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

_SECONDS_TO_END = 60.0


class PipelineProcess:
    """A pipeline that runs: the driver, its Java and its Python workers, all started by this process."""

    def __init__(
        self,
        file: Path,
        *options: str,
        log: Path | None = None,
        command: Sequence[str] | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.log = log or file.with_suffix(".log")
        run = [sys.executable, "-c", "from semistream.cli.main import main; main()", "run", str(file), *options]
        command = run if command is None else list(command)
        with self.log.open("ab") as said:
            self._driver = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True, env=environment
            )
        self._seen: dict[int, psutil.Process] = {}

    @property
    def process_id(self) -> int:
        """The process of the driver."""
        return self._driver.pid

    @property
    def exit_code(self) -> int | None:
        """How the driver has ended, None while it runs."""
        return self._driver.poll()

    def said(self) -> str:
        """Return what this and earlier runs with the same log have said."""
        return self.log.read_text(errors="replace")

    def java(self) -> psutil.Process | None:
        """Return the Java process of the driver."""
        return next((child for child in self._family() if _name(child) == "java"), None)

    def workers(self) -> list[psutil.Process]:
        """Return the Python workers that run tasks: what Spark's daemon has forked."""
        family = self._family()
        daemons = {child.pid for child in family if _is_daemon(child)}
        return [child for child in family if _parent(child) in daemons]

    def kill(self, java: psutil.Process | None) -> None:
        """Kill the driver by SIGKILL, and Java first if it is given: without its driver it ends by itself, later."""
        if java is not None:
            kill_at_once(java)
        self._driver.kill()
        self._driver.wait()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask for a clean stop and return the exit code; a terminal sends Ctrl-C to all processes of the group."""
        if number == signal.SIGINT:
            os.killpg(self._driver.pid, number)
        else:
            self._driver.send_signal(number)
        return self.wait(_SECONDS_TO_END)

    def wait(self, seconds: float) -> int:
        """Return the exit code as soon as the driver has ended."""
        return self._driver.wait(seconds)

    def end(self) -> None:
        """Kill what is left of the driver, Java and workers, and wait until all are gone."""
        self._family()
        if self._driver.poll() is None:
            self._driver.kill()
            self._driver.wait()
        for process in self._seen.values():
            with suppress(psutil.NoSuchProcess):  # it knows by the time of the start if a number was used again
                process.kill()
        # Java's children are left to whoever collects orphans, which may take its time.
        wait_until(lambda: all(map(_has_ended, self._seen.values())), _SECONDS_TO_END, "the end of all processes")

    def _family(self) -> list[psutil.Process]:
        family: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):
            family = psutil.Process(self._driver.pid).children(recursive=True)
        self._seen.update({child.pid: child for child in family})
        return family


def kill_at_once(process: psutil.Process) -> bool:
    """Send SIGKILL without a look at the process first, which takes milliseconds; False if it has ended."""
    try:
        os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition: Callable[[], bool], seconds: float, what: str, every: float = 0.01) -> None:
    """Return as soon as a condition holds; raises TimeoutError."""
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            raise TimeoutError(f"{what} did not happen in {seconds:g} seconds")
        time.sleep(every)


def newest_planned(checkpoint: Path) -> int:
    """Return the last batch whose input Spark has fixed, or -1."""
    return _newest(checkpoint / "offsets")


def newest_written(sink: Path) -> int:
    """Return the last batch that the log of a table has, or -1."""
    return _newest(sink / "_spark_metadata")


def newest_finished(checkpoint: Path) -> int:
    """Return the last batch that Spark counts as done, or -1."""
    return _newest(checkpoint / "commits")


def _newest(log: Path) -> int:
    names = os.listdir(log) if log.is_dir() else []  # noqa: PTH208 - looked at many times a second
    return max((int(name.removesuffix(".compact")) for name in names if name[0].isdigit()), default=-1)


def _has_ended(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    return True


def _is_daemon(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):  # zombies, too
        return process.cmdline()[-2:] == ["pyspark.daemon", "pyspark.worker"]
    return False


def _parent(process: psutil.Process) -> int:
    with suppress(psutil.NoSuchProcess):
        return process.ppid()
    return -1


def _name(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess):
        return process.name()
    return ""
