"""What a run of a pipeline says while it goes: sentences for people, or one JSON object a line for programs."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import typer

from semistream.cli import one_sentence, run_rendering, run_screen
from semistream.cli.log_format import LogFormat
from semistream.cli.rendering import say_aside

if TYPE_CHECKING:
    from semistream.pipeline.description import PipelineDescription
    from semistream.pipeline.live.live_page import LivePage
    from semistream.pipeline.running import RunTotals
    from semistream.pipeline.worker_memory import WorkerMemory
    from semistream.spark.batch_progress import BatchProgress


class RunLog(Protocol):
    """Is told what happens in a run."""

    def starting(self, description: PipelineDescription) -> None:
        """Say that Spark is being started, which takes seconds."""

    def page(self, page: LivePage) -> None:
        """Say where the live page is, or why there is none."""

    def memory(self, needed: WorkerMemory | None, warning: str | None) -> None:
        """Say what the workers need."""

    def screen(self, description: PipelineDescription) -> AbstractContextManager[run_screen.Screen]:
        """Return what shows batches."""

    def ended(self, totals: RunTotals) -> None:
        """Say what the run has done."""

    def stopped(self, signal_name: str) -> None:
        """Say that a signal has ended it."""


class TextLog:
    """Sentences, and a view that is drawn anew on a terminal."""

    def starting(self, description: PipelineDescription) -> None:
        run_rendering.show_starting(description)

    def page(self, page: LivePage) -> None:
        say_aside(f"Live page: {page.url}" if page.url is not None else f"Warning: {page.problem}")

    def memory(self, needed: WorkerMemory | None, warning: str | None) -> None:
        run_rendering.show_memory(needed, warning)

    def screen(self, description: PipelineDescription) -> AbstractContextManager[run_screen.Screen]:
        return run_screen.screen(description)

    def ended(self, totals: RunTotals) -> None:
        run_rendering.show_totals(totals)

    def stopped(self, signal_name: str) -> None:
        typer.echo(f"Stopped by {signal_name}; the next start goes on from there.", err=True)


class JsonLog:
    """One object a line on standard output, where Java writes nothing, each with `time`, `level` and `event`.

    Batches are told as in `json_lines`.
    """

    def starting(self, description: PipelineDescription) -> None:
        _tell("info", "starting", pipeline=description.name, spark_master=description.spark.master)

    def page(self, page: LivePage) -> None:
        if page.url is not None:
            _tell("info", "page", url=page.url)
        else:
            _tell("warning", "page", message=page.problem)

    def memory(self, needed: WorkerMemory | None, warning: str | None) -> None:
        if needed is not None:
            _tell("info", "memory", message=str(needed))
        if warning is not None:
            _tell("warning", "memory", message=warning)

    def screen(self, description: PipelineDescription) -> AbstractContextManager[run_screen.Screen]:
        del description
        return nullcontext(self)

    def show(self, batch: BatchProgress) -> None:
        """Tell a batch that has ended."""
        for row in batch.rows():
            _tell("info", "batch", **row)

    def ended(self, totals: RunTotals) -> None:
        _tell("info", "ended", **totals.row())
        if totals.warning:
            _tell("warning", "ended", message=totals.warning)

    def stopped(self, signal_name: str) -> None:
        _tell("info", "stopped", signal=signal_name)


@contextmanager
def logging(log_format: LogFormat) -> Iterator[RunLog]:
    """Return the log of a run; in JSON, errors and Python's warnings are told so, too."""
    if log_format is LogFormat.TEXT:
        yield TextLog()
        return
    one_sentence.tell_errors_by(lambda sentence: _tell("error", "error", message=sentence))
    with warnings.catch_warnings():
        warnings.showwarning = _tell_warning
        yield JsonLog()


def _tell(level: str, event: str, **facts: Any) -> None:
    moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    told: Mapping[str, Any] = {"time": moment, "level": level, "event": event, **facts}
    print(json.dumps(told, default=str), flush=True)


def _tell_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _tell("warning", "warning", message=" ".join(str(message).split()))
