"""Connections to a database that are used again, and work that is tried again when one is lost."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol, TypeVar, cast

from semistream.core.durations import format_seconds
from semistream.core.errors import MasterUnavailableError, SemistreamError

Result = TypeVar("Result")

_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 5.0
_MAX_IDLE = 4


class Connection(Protocol):
    """What both drivers' connections can do."""

    def close(self) -> None:
        """Close it, whatever state it is in."""


@dataclass(frozen=True)
class Fault:
    """What an error of a driver means."""

    reason: str
    """A part of a sentence for the user, without values and secrets."""
    is_passing: bool
    """Whether it makes sense to try again."""
    advice: str = "check the server"


class Sessions:
    """Connections of one process to one server; an error during some work closes the connection it was done on.

    Work must be such that it may be done again, as what only reads is: after a fault that may pass it is, with pauses
    that grow and differ by chance, until `retry_seconds` have gone by. Then `error` is raised.
    """

    def __init__(
        self,
        server: str,
        connect: Callable[[], Any],
        understand: Callable[[Exception], Fault | None],
        retry_seconds: float,
        error: type[SemistreamError] = MasterUnavailableError,
    ) -> None:
        self._error = error
        self._server = server
        self._connect = connect
        self._understand = understand
        self._retry_seconds = retry_seconds
        self._idle: list[Any] = []
        self._lock = Lock()
        self._process = os.getpid()
        self._random = random.Random()
        self.retries = 0
        """How often work was tried again."""

    def run(self, work: Callable[[Any], Result]) -> Result:
        """Return what the work returns; an error if the server cannot be made to answer."""
        end = time.monotonic() + self._retry_seconds
        pause = _FIRST_PAUSE_SECONDS
        while True:
            fault, result = self._tried(work)
            if fault is None:
                return cast(Result, result)
            if not fault.is_passing:
                raise self._error(f"{self._server} {fault.reason}: {fault.advice}.") from None
            wait = pause * self._random.uniform(0.5, 1.0)
            if time.monotonic() + wait > end:
                tried = format_seconds(self._retry_seconds)
                raise self._error(
                    f"{self._server} {fault.reason}, even after {tried} of retries: {fault.advice}, then start again."
                ) from None
            time.sleep(wait)
            self.retries += 1
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _tried(self, work: Callable[[Any], Result]) -> tuple[Fault | None, Result | None]:
        """Return a fault, or None and the result."""
        connection = None
        try:
            connection = self._taken()
            result = work(connection)
        except Exception as error:
            if connection is not None:
                _closed(connection)
            fault = self._understand(error)
            if fault is None:
                raise
            return fault, None
        except BaseException:
            if connection is not None:
                _closed(connection)
            raise
        self._give_back(connection)
        return None, result

    def _taken(self) -> Any:
        with self._lock:
            if self._process != os.getpid():  # connections of the parent are not ours to use or to close
                self._idle, self._process = [], os.getpid()
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _give_back(self, connection: Any) -> None:
        with self._lock:
            if len(self._idle) < _MAX_IDLE:
                self._idle.append(connection)
                return
        _closed(connection)

    def close(self) -> None:
        """Close what nobody uses; what a parent process has opened stays open."""
        with self._lock:
            idle, self._idle = self._idle, []
        if self._process != os.getpid():
            return
        for connection in idle:
            _closed(connection)

    def __del__(self) -> None:
        self.close()


def _closed(connection: Connection) -> None:
    with suppress(Exception):  # it is of no use any more
        connection.close()
