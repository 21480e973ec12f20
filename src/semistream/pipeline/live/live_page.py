"""The live page from its start to its end: it is served beside a pipeline and can never stop it."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any, Self

from semistream.master_table import MasterTable
from semistream.pipeline.description import PipelineDescription
from semistream.pipeline.live.about import about
from semistream.pipeline.live.board import LiveBoard
from semistream.pipeline.live.master_watch import MasterWatch
from semistream.pipeline.live.page import page_answer
from semistream.pipeline.live.server import Answer, LiveServer, json_answer, text_answer
from semistream.spark.batch_progress import BatchProgress, MirrorNumbers

DEFAULT_PORT = 4050
_TRIED_PORTS = 16
_METRICS_KIND = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS_BETWEEN_LOOKS = 1.0
_WAITING = "Waiting for"
"""What Spark's status begins with while a query has nothing to do."""


class LivePage:
    """A pipeline's page and what it shows. Nothing here raises an error: what goes wrong is one sentence in `problem`.

    `add` comes from the thread of Spark's listener, `look_at` from the one that waits for the query.
    """

    def __init__(self, description: PipelineDescription) -> None:
        self._wanted = description.statistics.page
        tables = [MasterTable(dimension.table) for dimension in description.dimensions]
        self._watch = MasterWatch(tables)
        self._board = LiveBoard(about(description), self._watch.facts)
        self._server: LiveServer | None = None
        self._next_look = 0.0
        self.problem: str | None = None
        """Why there is no page, if there is none."""

    @property
    def url(self) -> str | None:
        """Where the page is, while it is served."""
        return self._server.url if self._server is not None else None

    def start(self) -> Self:
        """Serve the page, if its port can be had."""
        try:
            self._server = self._bound()
            self._server.start()
            self._watch.start()
        except Exception as error:
            self.problem = self._sentence(error)
        return self

    def stop(self) -> None:
        """Serve it no longer, and free the port."""
        self._watch.stop()
        if self._server is not None:
            self._server.stop()
            self._server = None

    def add(self, batch: BatchProgress) -> None:
        """Show a batch that has ended."""
        try:
            self._board.add(batch)
        except Exception as error:
            self.problem = self.problem or f"The live page cannot show a batch ({type(error).__name__})."

    def follow_mirrors(self, numbers: Callable[[], Mapping[str, MirrorNumbers]]) -> None:
        """Show the refreshes of master tables, by their addresses."""
        self._board.follow_mirrors(numbers)

    def look_at(self, query: Any) -> None:
        """Learn whether a batch of the query is running; asks Spark at most once a second."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _SECONDS_BETWEEN_LOOKS
        with suppress(Exception):  # the query may have ended, or Java may be gone
            status = query.status
            self._board.note_running(bool(status["isTriggerActive"]) and not status["message"].startswith(_WAITING))

    def _bound(self) -> LiveServer:
        wanted = self._wanted
        if wanted.port is not None:
            return LiveServer(wanted.host, wanted.port, self._answers())
        for port in range(DEFAULT_PORT, DEFAULT_PORT + _TRIED_PORTS - 1):
            try:
                return LiveServer(wanted.host, port, self._answers())
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
        return LiveServer(wanted.host, DEFAULT_PORT + _TRIED_PORTS - 1, self._answers())

    def _answers(self) -> dict[str, Callable[[], Answer]]:
        page = page_answer()
        return {
            "/": lambda: page,
            "/state": lambda: json_answer(self._board.state()),
            "/metrics": lambda: text_answer(self._board.metrics(), kind=_METRICS_KIND),
            "/health": self._health,
        }

    def _health(self) -> Answer:
        complaints = self._board.complaints()
        status = HTTPStatus.SERVICE_UNAVAILABLE if complaints else HTTPStatus.OK
        return json_answer({"healthy": not complaints, "complaints": complaints}, status)

    def _sentence(self, error: Exception) -> str:
        port = self._wanted.port if self._wanted.port is not None else DEFAULT_PORT
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            why = f"port {port} of {self._wanted.host} is taken: set [statistics] port to another one"
        else:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            why = f"port {port} of {self._wanted.host} cannot be used ({reason}): check [statistics] host and port"
        return f"The pipeline runs without its live page, because {why}."


@contextmanager
def live_page(description: PipelineDescription) -> Iterator[LivePage | None]:
    """Serve the page of a pipeline while the block runs; None if its file does not ask for one."""
    if not description.statistics.page.wanted:
        yield None
        return
    page = LivePage(description).start()
    try:
        yield page
    finally:
        page.stop()
