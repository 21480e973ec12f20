"""A query that Flink runs in a process of its own, and how far it has come."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semistream_lab.peers import peer_memory
from semistream_lab.peers.contract import PeerFailedError
from semistream_lab.peers.flink import job_process
from semistream_lab.python_workers import MARK

LOOPBACK = "127.0.0.1"
_SECONDS_TO_STOP = 30
_BASE_HEAP_BYTES = 1 << 30
_HEAPS_OF_A_CACHE = 8
_METRICS_EVERY_MS = 50
_SECONDS_TO_ANSWER = 900
_KEPT_BACK = ("SEMISTREAM_PEERS_POSTGRESQL", "SEMISTREAM_PEERS_REDIS")  # they may hold passwords


@dataclass(frozen=True)
class Query:
    """What Flink is asked to do; statements may hold a password and are never shown."""

    statements: Sequence[str]
    query: str
    jars: Sequence[Path] = ()
    cache_bytes: int = 0
    """What its caches may take, for which the heap of Java must have room."""

    def __repr__(self) -> str:
        return f"Query({self.query!r})"


class RunningJob:
    """A process of Flink's Python, with Java behind it, that runs one query.

    `close` must be called; it ends the process, also after a failure.
    """

    def __init__(self, python: Path, query: Query, cores: int, logs: Path, *, name: str, stays: bool) -> None:
        """Start the process; its log goes into a folder that only this user may read."""
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.port = _free_port()
        self._mark = f"{name}-{os.getpid()}"
        heap = _BASE_HEAP_BYTES + _HEAPS_OF_A_CACHE * query.cache_bytes
        environment = {
            **{variable: value for variable, value in os.environ.items() if variable not in _KEPT_BACK},
            MARK: self._mark,
            "FLINK_LOG_DIR": str(logs.resolve()),
            "FLINK_IDENT_STRING": name,
            "JVM_ARGS": f"-Xmx{heap}",
        }
        # A session of its own keeps Ctrl-C away from it: it ends when its input does.
        self._process = subprocess.Popen(
            [str(python), "-I", job_process.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
            start_new_session=True,
        )
        order = {
            "settings": settings(cores, self.port, query.jars),
            "statements": list(query.statements),
            "query": query.query,
            "stays": stays,
        }
        self._send(json.dumps(order))

    def answer(self) -> dict[str, Any]:
        """Return what the process tells, once it does so; raise PeerFailedError if it fails."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], _SECONDS_TO_ANSWER)
        line = self._process.stdout.readline() if ready else ""
        answer: dict[str, Any] = json.loads(line) if line else {"failed": "no answer"}
        if "failed" in answer:
            kind = answer["failed"]
            raise PeerFailedError(f"Flink returned an error ({kind}): run it with --data DIR and read the logs there.")
        return answer

    def peak_bytes(self) -> int | None:
        """Return the most memory that the largest of its processes, which is Java, has had."""
        return max(peer_memory.peaks_of_workers(self._mark), default=None)

    def close(self) -> None:
        """End the process and wait until it is gone."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):  # of an order that it did not wait for
                pipe.close()
        try:
            self._process.wait(_SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it is gone already, which `answer` will tell
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()


def settings(cores: int, port: int, jars: Sequence[Path]) -> dict[str, str]:
    """Return Flink's settings: as many tasks as cores, objects used again, nothing that listens beyond loopback."""
    return {
        "parallelism.default": str(cores),
        "taskmanager.numberOfTaskSlots": str(cores),
        "pipeline.object-reuse": "true",
        "pipeline.jars": ";".join(jar.as_uri() for jar in jars),
        "restart-strategy.type": "none",
        "rest.address": LOOPBACK,
        "rest.bind-address": LOOPBACK,
        "rest.port": str(port),
        "rest.bind-port": str(port),
        "jobmanager.bind-host": LOOPBACK,
        "taskmanager.bind-host": LOOPBACK,
        "web.submit.enable": "false",
        "web.cancel.enable": "false",
        "metrics.fetcher.update-interval": str(_METRICS_EVERY_MS),
    }


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind((LOOPBACK, 0))
        port: int = listening.getsockname()[1]
        return port
