"""The command that runs a pipeline."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Self

import typer

from semistream.cli.log_format import LogFormat

if TYPE_CHECKING:
    from semistream.cli.run_log import RunLog

_SECONDS_TO_STOP = 60.0


def run(
    pipeline: Annotated[Path, typer.Argument(metavar="PIPELINE.toml", help="The pipeline file.", show_default=False)],
    check: Annotated[bool, typer.Option("--check", help="Only check: start nothing and write nothing.")] = False,
    accept_moved: Annotated[
        bool,
        typer.Option(
            "--accept-moved",
            help="Continue although [source], the table of [[dimension]] or [sink] has moved since the last start.",
        ),
    ] = False,
    ui: Annotated[
        bool,
        typer.Option("--ui", help="Serve a live page about the run; [statistics] port and host say where."),
    ] = False,
    log_format: Annotated[
        LogFormat,
        typer.Option(
            "--log", help="What is told: sentences, or one JSON object per line and batch, on standard output."
        ),
    ] = LogFormat.TEXT,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write a summary of the run, as a list of flat objects."),
    ] = None,
) -> None:
    """Run the pipeline described by a file.

    The pipeline enriches a stream from a master table, applies SQL expressions, and writes the result to a sink.

    Ctrl-C or SIGTERM stops it after the current batch; the next start continues from there. The file has the
    tables pipeline, source, prepare, enrich, dimension, transform, sink, trigger, statistics and spark;
    examples/pipeline_all_settings.toml explains all their keys.
    """
    from semistream.cli import run_log

    with run_log.logging(log_format) as log:
        _run(pipeline, log, check=check, accept_moved=accept_moved, ui=ui, json_file=json_file)


def _run(pipeline: Path, log: RunLog, *, check: bool, accept_moved: bool, ui: bool, json_file: Path | None) -> None:
    from semistream.cli import json_output, run_rendering
    from semistream.pipeline.reading import read_description

    description = read_description(pipeline)
    if ui:
        description = description.with_page()
    if json_file is not None:
        json_output.check_writable(json_file)
    from semistream.pipeline.checked_start import CheckedStart, check_sources, check_unused
    from semistream.pipeline.mirror_keeper import awaits_mirror
    from semistream.pipeline.star import check_joins

    # Both are looked at once more, under the lock, when Spark is there; but Spark takes seconds to come.
    if not check:
        check_unused(description)
    if not awaits_mirror(description):
        CheckedStart(description, accept_moved=accept_moved)
    check_sources(description)
    check_joins(description)
    from semistream.pipeline.live.live_page import live_page
    from semistream.pipeline.planning import plan_pipeline
    from semistream.pipeline.running import run_pipeline, session_of
    from semistream.pipeline.worker_memory import memory_warning, needed_memory

    log.starting(description)
    with nullcontext() if check else live_page(description) as page:
        if page is not None:
            log.page(page)
        with session_of(description) as spark:
            needed = needed_memory(spark, description)
            log.memory(None if check else needed, memory_warning(spark, needed))
            if check:
                planned = plan_pipeline(spark, description, accept_moved=accept_moved)
                run_rendering.show_checked(description, planned.steps, needed)
                return
            with _StopSignals() as signals, log.screen(description) as screen:
                totals = run_pipeline(
                    description, screen.show, spark=spark, stop=signals.stop, accept_moved=accept_moved, page=page
                )
    if json_file is not None:
        json_output.write_json(json_file, [totals.row()])
    log.ended(totals)
    if signals.number is not None:
        log.stopped(signals.name)
        raise typer.Exit(128 + signals.number)


class _StopSignals:
    """Catches Ctrl-C and SIGTERM: the first asks for a clean stop, the second ends the process at once.

    If the clean stop takes too long, the process ends, too: what was not finished is done again by the next start.

    Must be entered in the main thread, after the Spark session is made, which puts a handler of its own for Ctrl-C.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.number: int | None = None

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._received) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def name(self) -> str:
        """What people call the signal."""
        return "Ctrl-C" if self.number == signal.SIGINT else "SIGTERM"

    def _received(self, number: int, _frame: FrameType | None) -> None:
        if self.number is not None:
            os._exit(128 + number)
        self.number = number
        self.stop.set()
        limit = threading.Timer(_SECONDS_TO_STOP, os._exit, [128 + number])
        limit.daemon = True
        limit.start()
