"""Systems to put into the seam of master tables: they count calls, and fail, interrupt or die at one of them."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from semistream.core.file_system import System

CALLS = (
    *("open", "close", "write", "write_at", "read_into", "sync", "link", "rename", "unlink", "make_directory"),
    *("names", "status", "lock"),
)


class Killed(BaseException):
    """The process is dead: nothing that it would still do happens."""


class HastySystem(System):
    """Does what the system does, but waits for no disk: nobody pulls the plug of the machine that runs the tests."""

    def sync(self, descriptor: int) -> None:
        """Leave it to the system when it writes."""


class WatchedSystem(HastySystem):
    """Does what the system does, and tells what is about to be done and what was done."""

    def before(self, call: str, arguments: tuple[Any, ...]) -> None:
        """Be told what comes next."""

    def after(self, call: str, arguments: tuple[Any, ...], result: Any) -> None:
        """Be told what was done."""


def _watched(call: str) -> Callable[..., Any]:
    real = getattr(HastySystem, call)

    def watched(self: WatchedSystem, *arguments: Any) -> Any:
        self.before(call, arguments)
        result = real(self, *arguments)
        self.after(call, arguments, result)
        return result

    return watched


for _call in CALLS:
    setattr(WatchedSystem, _call, _watched(_call))


class CountingSystem(WatchedSystem):
    """Counts all calls."""

    def __init__(self) -> None:
        self.count = 0

    def before(self, call: str, arguments: tuple[Any, ...]) -> None:
        """Count a call."""
        del call, arguments
        self.count += 1


WAYS = (
    *("EIO", "ENOSPC", "SIGINT before", "SIGINT after", "SIGTERM before", "SIGTERM after"),
    *("SIGKILL before", "SIGKILL after"),
)


class FailingSystem(WatchedSystem):
    """Fails, interrupts or dies in one of the ways at one call, and says what it was."""

    def __init__(self, way: str, at: int) -> None:
        self.struck = ""
        self._way = way
        self._left = at
        self._dead = False
        self._held: set[int] = set()
        self._locked: set[int] = set()

    def before(self, call: str, arguments: tuple[Any, ...]) -> None:
        """Fail instead of the call, or be interrupted before it."""
        if self._dead:
            raise Killed
        self._left -= 1
        if self._left:
            return
        self.struck = f"{self._way} {call}"
        if self._way in ("EIO", "ENOSPC"):
            if call == "close":
                os.close(arguments[0])
            if call == "write":
                super(WatchedSystem, self).write(arguments[0], arguments[1][: len(arguments[1]) // 2])
            raise OSError(getattr(errno, self._way), os.strerror(getattr(errno, self._way)))
        if self._way.endswith("before"):
            self._strike()

    def after(self, call: str, arguments: tuple[Any, ...], result: Any) -> None:
        """Be interrupted after the call."""
        if call == "open":
            self._held.add(result)
        elif call == "lock":
            self._held.discard(arguments[0])
            self._locked.add(arguments[0])
        elif call == "close":
            self._held.discard(arguments[0])
        if not self._left and self._way.endswith("after"):
            self._left = -1
            self._strike()

    def close(self, descriptor: int) -> None:
        """Close a descriptor, unless the kernel has done it."""
        if not self._dead:
            super().close(descriptor)

    def _strike(self) -> None:
        if self._way.startswith("SIGKILL"):
            self._dead = True
            # As the kernel does. What is locked belongs to file objects, which close it themselves.
            for descriptor in self._held:
                os.close(descriptor)
            for descriptor in self._locked:
                with suppress(OSError):
                    fcntl.flock(descriptor, fcntl.LOCK_UN)
            raise Killed
        raise KeyboardInterrupt if self._way.startswith("SIGINT") else SystemExit(143)
