"""Runs a pipeline until it ends, fails or is told to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeAlias

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from semistream.core.errors import InvalidSettingError
from semistream.pipeline import jars, places, secrets
from semistream.pipeline.dead_letters import dead_letters_writer
from semistream.pipeline.description import PipelineDescription, StatisticsDescription
from semistream.pipeline.failures import as_own_error
from semistream.pipeline.live.live_page import LivePage, live_page
from semistream.pipeline.mirror_keeper import MirrorKeepers
from semistream.pipeline.planning import PlannedPipeline, plan_pipeline
from semistream.pipeline.sinks.contract import triggered
from semistream.pipeline.sources.files import Files
from semistream.pipeline.sources.kinds import kind_of
from semistream.pipeline.waiting_files import WaitingFiles
from semistream.spark.batch_progress import BatchProgress, ProgressListener, Scalar
from semistream.spark.metrics_files import JsonLinesFile, PrometheusFile
from semistream.spark.spark_session import local_checkpoint, make_session

ProgressCallback: TypeAlias = Callable[[BatchProgress], None]
_REDACTION = "spark.redaction.regex"
_POLL_SECONDS = 0.2
_SECONDS_FOR_THE_LAST_BATCH = 8.0
_SECONDS_FOR_THE_LAST_EVENT = 10.0
_CONNECTION_LOST = (Py4JError, ConnectionError, EOFError)
_LOGS_OF_WRONG_EXPRESSIONS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark writes the whole stack there, also of errors that are caught and told in one sentence."""


class _BatchFile(Protocol):
    def add(self, batch: BatchProgress) -> None: ...


@dataclass
class RunTotals:
    """What a run of a pipeline has done, over all its batches."""

    pipeline: str
    batches: int = 0
    last_batch_id: int | None = None
    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    stopped: bool = False
    counts: dict[str, float] = field(default_factory=dict)
    warning: str | None = None

    def add(self, batch: BatchProgress) -> None:
        """Add a batch."""
        self.batches += 1
        self.last_batch_id = batch.batch_id
        self.rows_in += batch.rows_in
        self.rows_out += batch.rows_out or 0
        for enrichment in batch.enrichments:
            counts = enrichment.as_dict()
            for name in _SUMMED:
                if isinstance(value := counts.get(name), int | float):
                    self.counts[name] = self.counts.get(name, 0) + value

    def row(self) -> dict[str, Scalar]:
        """Return a flat object."""
        return {
            "pipeline": self.pipeline,
            "batches": self.batches,
            "last_batch_id": self.last_batch_id,
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "seconds": self.seconds,
            "stopped": self.stopped,
            **{name: self.counts.get(name, 0) for name in _SUMMED},
        }


_SUMMED = (
    "cache_hits",
    "read_hits",
    "shadow_hits",
    "absent",
    "null_keys",
    "refused",
    "page_reads",
    "read_requests",
    "bytes_read",
)


def run_pipeline(
    description: PipelineDescription,
    progress_callback: ProgressCallback | None = None,
    *,
    spark: SparkSession | None = None,
    stop: threading.Event | None = None,
    accept_moved: bool = False,
    page: LivePage | None = None,
) -> RunTotals:
    """Run a pipeline and return what it has done; without `spark` a session is made and stopped at the end.

    `progress_callback` is called once a batch from another thread. Setting `stop` ends the run after the batch that is
    running, or in the middle of it if it takes long; the next run goes on after the last finished batch. `accept_moved`
    goes on although source, master table or sink have other names than at the last start. `page` is a live page that is
    served already; without it one is served if the file asks for it. Raises an error of semistream if the query fails.
    """
    if page is None and description.statistics.page.wanted:
        with live_page(description) as page:
            return run_pipeline(
                description, progress_callback, spark=spark, stop=stop, accept_moved=accept_moved, page=page
            )
    if spark is None:
        with session_of(description) as made:
            return _run(made, description, progress_callback, stop or threading.Event(), accept_moved, page)
    return _run(spark, description, progress_callback, stop or threading.Event(), accept_moved, page)


@contextmanager
def session_of(description: PipelineDescription) -> Iterator[SparkSession]:
    """Make the session that a pipeline asks for, with the jars of its formats, and stop it at the end."""
    for name in _LOGS_OF_WRONG_EXPRESSIONS:
        PySparkLogger.getLogger(name).disabled = True
    formats, given = jars.formats_of(description), {_REDACTION: secrets.REDACTION, **description.spark.settings}
    settings = jars.settings_with_jars(formats, given)
    try:
        spark = make_session(
            description.name, description.spark.master, settings, memory=description.enrich.memory_bytes
        )
    except InvalidSettingError as error:
        packages = jars.fetched_packages(formats, given)
        if packages and isinstance(error.__cause__, PySparkException):
            raise jars.cannot_be_fetched(packages) from error.__cause__
        raise
    try:
        yield spark
    finally:
        with suppress(*_CONNECTION_LOST):
            spark.stop()


def _run(
    spark: SparkSession,
    description: PipelineDescription,
    callback: ProgressCallback | None,
    stop: threading.Event,
    accept_moved: bool,
    page: LivePage | None,
) -> RunTotals:
    local = places.is_local(description.checkpoint)
    with local_checkpoint(spark, description.checkpoint) if local else nullcontext():
        keepers = MirrorKeepers.of(description, spark)
        planned = plan_pipeline(spark, description, accept_moved=accept_moved)
        files = _files(description.statistics)
        totals = RunTotals(description.name)
        waiting = _waiting_files(description)
        if page is not None:
            page.follow_mirrors(keepers.by_table)

        def on_batch(batch: BatchProgress) -> None:
            if waiting:
                counts = [files.count() for files in waiting]
                file_count, size_bytes = (sum(one) for one in zip(*counts, strict=True))
                batch = replace(batch, backlog_files=file_count, backlog_bytes=size_bytes)
            batch = replace(batch, mirror=keepers.numbers())
            totals.add(batch)
            if page is not None:
                page.add(batch)
            if callback is not None:
                callback(batch)
            for file in files:
                file.add(batch)

        listener = ProgressListener(description.name, on_batch)
        started = time.monotonic()
        planned.remember()
        spark.streams.addListener(listener)
        try:
            with keepers.at_work():
                _start_and_wait(planned, description, stop, listener, keepers, page)
        finally:
            with suppress(*_CONNECTION_LOST):
                spark.streams.removeListener(listener)
        totals.seconds = time.monotonic() - started
        totals.stopped = stop.is_set()
        if listener.error is not None:
            totals.warning = f"Progress could not be told in full ({listener.error})."
        elif page is not None:
            totals.warning = page.problem
        return totals


def _waiting_files(description: PipelineDescription) -> list[WaitingFiles]:
    """Return what counts the files that wait in the sources that are folders of this machine."""
    if not places.is_local(description.checkpoint):
        return []
    waiting = []
    for number, source in enumerate(description.sources):
        path = source.path
        if not isinstance(kind_of(source.format), Files) or path is None or not places.is_local(path):
            continue
        if not places.has_pattern(path) and Path(path).is_dir():
            options = {name.lower(): value for name, value in source.options.items()}
            log = Path(description.checkpoint) / "sources" / str(number)
            waiting.append(WaitingFiles(Path(path), log, name_filter=options.get("pathglobfilter", "*")))
    return waiting


def _files(statistics: StatisticsDescription) -> list[_BatchFile]:
    files: list[_BatchFile] = []
    if statistics.json_lines is not None:
        files.append(JsonLinesFile(statistics.json_lines))
    if statistics.prometheus is not None:
        files.append(PrometheusFile(statistics.prometheus))
    return files


def _start_and_wait(
    planned: PlannedPipeline,
    description: PipelineDescription,
    stop: threading.Event,
    listener: ProgressListener,
    keepers: MirrorKeepers,
    page: LivePage | None,
) -> None:
    queries: list[StreamingQuery] = []
    try:
        with planned.startable():
            queries.append(planned.sink.writer(planned.rows).start())
        for number, letters in planned.letters.items():
            writer = dead_letters_writer(letters, description, number)
            queries.append(triggered(writer, description.trigger).start())
        _wait(queries, stop, keepers, page)
    except PySparkException as error:
        raise as_own_error(error) from error
    except _CONNECTION_LOST as error:
        # Whoever stopped us may have stopped Java, too; then nothing is left to be stopped or told.
        if not stop.is_set():
            raise as_own_error(error) from error
        listener.finished.set()
    finally:
        _stop(queries)
    listener.finished.wait(_SECONDS_FOR_THE_LAST_EVENT)


def _wait(
    queries: Sequence[StreamingQuery], stop: threading.Event, keepers: MirrorKeepers, page: LivePage | None
) -> None:
    """Return when all queries have ended or `stop` is set; raises the error of the first that fails.

    Raises StaleMirrorError, too, if the mirror has become older than the file allows.
    """
    active = list(queries)
    while active:
        if stop.is_set():
            _finish_batches(active)
            return
        stop.wait(_POLL_SECONDS)
        keepers.check()
        if page is not None:
            page.look_at(queries[0])
        for query in active:
            if not query.isActive:
                query.awaitTermination()  # it has ended, and this raises its error
        active = [query for query in active if query.isActive]


def _finish_batches(queries: Sequence[StreamingQuery]) -> None:
    """Wait until the batches that are running have ended, but not for long: a batch that is cut off is done again."""
    limit = time.monotonic() + _SECONDS_FOR_THE_LAST_BATCH
    for query in queries:
        run = _batch_number(query)
        while (
            query.isActive
            and query.status["isTriggerActive"]
            and _batch_number(query) == run
            and time.monotonic() < limit
        ):
            time.sleep(_POLL_SECONDS / 4)


def _batch_number(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return -1 if progress is None else progress["batchId"]


def _stop(queries: Sequence[StreamingQuery]) -> None:
    for query in queries:
        with suppress(PySparkException, *_CONNECTION_LOST):
            query.stop()
