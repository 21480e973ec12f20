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
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from semistream.master_table import MasterTable
from semistream.pipeline import places
from semistream.pipeline.dead_letters import dead_letters_writer
from semistream.pipeline.description import PipelineDescription, StatisticsDescription
from semistream.pipeline.failures import as_own_error
from semistream.pipeline.mirror_keeper import MirrorKeeper, ensure_mirror
from semistream.pipeline.planning import PlannedPipeline, plan_pipeline
from semistream.pipeline.sinks import sink_writer, triggered
from semistream.pipeline.waiting_files import WaitingFiles
from semistream.spark.batch_progress import BatchProgress, ProgressListener, Scalar
from semistream.spark.metrics_files import JsonLinesFile, PrometheusFile
from semistream.spark.spark_session import local_checkpoint, make_session

ProgressCallback: TypeAlias = Callable[[BatchProgress], None]
_POLL_SECONDS = 0.2
_SECONDS_FOR_THE_LAST_BATCH = 8.0
_SECONDS_FOR_THE_LAST_EVENT = 10.0
_CONNECTION_LOST = (Py4JError, ConnectionError, EOFError)


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
) -> RunTotals:
    """Run a pipeline and return what it has done; without `spark` a session is made and stopped at the end.

    `progress_callback` is called once a batch from another thread. Setting `stop` ends the run after the batch that is
    running, or in the middle of it if it takes long; the next run goes on after the last finished batch. `accept_moved`
    goes on although source, master table or sink have other names than at the last start. Raises an error of semistream
    if the query fails.
    """
    if spark is not None:
        return _run(spark, description, progress_callback, stop or threading.Event(), accept_moved)
    with session_of(description) as made:
        return _run(made, description, progress_callback, stop or threading.Event(), accept_moved)


@contextmanager
def session_of(description: PipelineDescription) -> Iterator[SparkSession]:
    """Make the session that a pipeline asks for, and stop it at the end."""
    spark = make_session(
        description.name,
        description.spark.master,
        description.spark.settings,
        memory=description.enrich.memory_bytes,
    )
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
) -> RunTotals:
    local = places.is_local(description.checkpoint)
    with local_checkpoint(spark, description.checkpoint) if local else nullcontext():
        keeper = _keeper(description, spark)
        planned = plan_pipeline(spark, description, accept_moved=accept_moved)
        files = _files(description.statistics)
        totals = RunTotals(description.name)
        waiting = _waiting_files(description)

        def on_batch(batch: BatchProgress) -> None:
            if waiting is not None:
                file_count, size_bytes = waiting.count()
                batch = replace(batch, backlog_files=file_count, backlog_bytes=size_bytes)
            if keeper is not None:
                batch = replace(batch, mirror=keeper.numbers())
            totals.add(batch)
            if callback is not None:
                callback(batch)
            for file in files:
                file.add(batch)

        listener = ProgressListener(description.name, on_batch)
        started = time.monotonic()
        planned.remember()
        spark.streams.addListener(listener)
        try:
            with _kept(keeper):
                _start_and_wait(planned, description, stop, listener, keeper)
        finally:
            with suppress(*_CONNECTION_LOST):
                spark.streams.removeListener(listener)
        totals.seconds = time.monotonic() - started
        totals.stopped = stop.is_set()
        if listener.error is not None:
            totals.warning = f"Progress could not be told in full ({listener.error})."
        return totals


def _keeper(description: PipelineDescription, spark: SparkSession) -> MirrorKeeper | None:
    """Return what keeps the mirror in step, if the file asks for it; the mirror is built if it is not there."""
    mirror, table = description.dimension.mirror, MasterTable(description.dimension.table)
    if mirror is None:
        return None
    ensure_mirror(table, mirror, spark)
    if mirror.refresh_seconds is None:
        return None
    keeper = MirrorKeeper(table, mirror, spark)
    if description.trigger.available_now:
        keeper.refresh()  # a run over what is there now should see the master table of now
        keeper.check()
    return keeper


@contextmanager
def _kept(keeper: MirrorKeeper | None) -> Iterator[None]:
    if keeper is None:
        yield
        return
    keeper.start()
    try:
        yield
    finally:
        keeper.stop()


def _waiting_files(description: PipelineDescription) -> WaitingFiles | None:
    """Return what counts the files that wait, if the source is one folder of this machine."""
    source, checkpoint = description.source, description.checkpoint
    if source.path is None or not places.is_local(source.path) or not places.is_local(checkpoint):
        return None
    if places.has_pattern(source.path) or not Path(source.path).is_dir():
        return None
    options = {name.lower(): value for name, value in source.options.items()}
    return WaitingFiles(Path(source.path), Path(checkpoint), name_filter=options.get("pathglobfilter", "*"))


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
    keeper: MirrorKeeper | None,
) -> None:
    queries: list[StreamingQuery] = []
    try:
        queries.append(sink_writer(planned.rows, description).start())
        if planned.records is not None:
            letters = dead_letters_writer(planned.records, description)
            queries.append(triggered(letters, description.trigger).start())
        _wait(queries, stop, keeper)
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


def _wait(queries: Sequence[StreamingQuery], stop: threading.Event, keeper: MirrorKeeper | None) -> None:
    """Return when all queries have ended or `stop` is set; raises the error of the first that fails.

    Raises StaleMirrorError, too, if the mirror has become older than the file allows.
    """
    active = list(queries)
    while active:
        if stop.is_set():
            _finish_batches(active)
            return
        stop.wait(_POLL_SECONDS)
        if keeper is not None:
            keeper.check()
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
