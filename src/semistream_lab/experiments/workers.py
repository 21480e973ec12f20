"""Processes that take one piece of work after the other and survive the death of each other."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Self

from semistream_lab.experiments.point import Point
from semistream_lab.experiments.results import ResultsFolder

Work = Callable[[Point, ResultsFolder], str]
"""Measures a point, saves its result, and returns what went wrong, or nothing."""

_SECONDS_TO_END = 5.0


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    point: Point | None = None


class Workers:
    """A number of processes; leaving the block ends them, whatever they are at."""

    def __init__(self, count: int, work: Work, folder: ResultsFolder) -> None:
        self._count = count
        self._work = work
        self._folder = folder
        # Not by fork: threads of compiled code do not survive it.
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.connection.close()
            if kind is not None:
                worker.process.terminate()
        for worker in self._workers:
            worker.process.join(_SECONDS_TO_END)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.process.close()

    def run(self, points: Sequence[Point], begins: Callable[[Point], None]) -> Iterator[tuple[Point, str]]:
        """Yield each point when it has ended, with what went wrong with it."""
        waiting = iter(points)
        for point in waiting:
            self._give(self._started(), point, begins)
            if len(self._workers) == self._count:
                break
        while busy := [worker for worker in self._workers if worker.point is not None]:
            ready = wait([worker.connection for worker in busy])
            for worker in [worker for worker in busy if worker.connection in ready]:
                point, error = self._result(worker)
                yield point, error
                following = next(waiting, None)
                if following is not None:
                    alive = worker if worker in self._workers else self._started()
                    self._give(alive, following, begins)

    def _started(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._work, self._folder), daemon=True)
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker

    def _give(self, worker: _Worker, point: Point, begins: Callable[[Point], None]) -> None:
        begins(point)
        worker.point = point
        with suppress(BrokenPipeError):  # its process is dead, which `_result` finds out
            worker.connection.send(point)

    def _result(self, worker: _Worker) -> tuple[Point, str]:
        point, worker.point = worker.point, None
        assert point is not None
        try:
            error: str = worker.connection.recv()
        except (EOFError, ConnectionError):
            worker.process.join(_SECONDS_TO_END)
            code = worker.process.exitcode
            worker.connection.close()
            self._workers.remove(worker)
            error = f"its process ended with code {code}, perhaps for want of memory: run it again with fewer --jobs."
        return point, error


def _serve(connection: Connection, work: Work, folder: ResultsFolder) -> None:
    # Ctrl-C reaches every process of the terminal; the one that started this one decides what happens.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            point = connection.recv()
        except EOFError:
            return
        connection.send(work(point, folder))
