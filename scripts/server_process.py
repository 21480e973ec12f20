"""Servers on loopback for trying things out: a free port, a temporary folder, a process that is stopped by its id."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

SERVERS_VARIABLE = "SEMISTREAM_SERVERS"
_DEFAULT = Path(__file__).parents[1] / ".servers"


class NotInstalledError(Exception):
    """A server cannot be had; the message is one sentence that says what to do."""


def servers_folder() -> Path:
    """Return where `make servers` puts things."""
    return Path(os.environ.get(SERVERS_VARIABLE, _DEFAULT))


def jars_that_are_there(name: str, pattern: str = "*.jar") -> list[Path]:
    """Return the jars of a folder of `.servers`; none if there are none."""
    return sorted((servers_folder() / name / "jars").glob(pattern))


def needed_jars(name: str, pattern: str = "*.jar") -> list[Path]:
    """Return the jars of a folder of `.servers`, or raise NotInstalledError."""
    found = jars_that_are_there(name, pattern)
    if not found:
        raise NotInstalledError(f"The jars of {name} are not there: run `make servers`.")
    return found


def free_port() -> int:
    """Return a port of loopback that nobody listens to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def server_folder(prefix: str, user: str | None) -> Path:
    """Return a new temporary folder that belongs to the user a server runs as."""
    folder = Path(tempfile.mkdtemp(prefix=f"semistream-{prefix}-"))
    if user is not None:
        record = pwd.getpwnam(user)
        os.chown(folder, record.pw_uid, record.pw_gid)
    return folder


def other_user(*names: str) -> str | None:
    """Return the first of these users that exists if we are root, whom database servers refuse to run as."""
    if os.geteuid() != 0:
        return None
    known = {record.pw_name for record in pwd.getpwall()}
    return next(name for name in names if name in known)


def pause(pid: int) -> None:
    """Stop a process, and return when each of its threads has stopped, which takes a moment."""
    os.kill(pid, signal.SIGSTOP)
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):
            while (thread / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "TZX":
                time.sleep(0.001)


class ServerProcess:
    """A server in a process of its own; its output goes to a file of its folder."""

    def __init__(self, command: Sequence[str], folder: Path, user: str | None = None) -> None:
        self._command = list(command)
        self.folder = folder
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The id of the process."""
        assert self._process is not None, "the server was not started"
        return self._process.pid

    def start(self, answers: Callable[[], bool], seconds: float = 180.0) -> None:
        """Start the server and wait until it answers."""
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                self._command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, user=self._user
            )
        end = time.monotonic() + seconds
        while not answers():
            if self._process.poll() is not None or time.monotonic() > end:
                self.kill()
                said = (self.folder / "output").read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"The server does not answer: {said[-2000:]}")
            time.sleep(0.05)

    def pause(self) -> None:
        """Stop the process without ending it; processes that it has started are not stopped."""
        pause(self.pid)

    def go_on(self) -> None:
        """Let a paused process go on."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End the process and wait for its end."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(20)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the process and remove its folder."""
        try:
            self.kill(how)
        except subprocess.TimeoutExpired:
            self.kill()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
