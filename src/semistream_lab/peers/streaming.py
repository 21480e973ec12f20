"""Peers that run in Spark's micro-batches, and how those are checked and measured."""

from __future__ import annotations

import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from semistream.spark.statistics import of_progress
from semistream_lab.peers import peer_memory
from semistream_lab.peers.contract import Bench, Peer, PeerFailedError, Turn
from semistream_lab.peers.data import PAYLOAD, STREAM_COLUMNS, Joined
from semistream_lab.peers.process_reads import JavaReads
from semistream_lab.peers.spark_stream import spark_stream
from semistream_lab.python_workers import own_workers

_PAUSE_SECONDS = 0.4
_CHECKED = "semistream_peers_checked"


class SparkPeer(Peer):
    """A peer that is a DataFrame made of the stream; all of them have one source, one sink and one session."""

    has_workers: ClassVar[bool] = True
    """Whether it runs in Python workers."""
    reads_files: ClassVar[bool] = False
    """Whether Java reads files of the master table."""

    @abstractmethod
    def enriched(self, stream: DataFrame, bench: Bench) -> DataFrame:
        """Return the stream with the columns of its master rows."""

    def release(self) -> None:
        """Free what `enriched` has put into Spark's memory."""

    def check(self, bench: Bench, first_row: int, batches: int) -> Joined:
        """Join the first rows from a position of the stream on and return what came out."""
        last = batches * bench.data.situation.batch_rows
        columns = (*STREAM_COLUMNS, *PAYLOAD) if self.joins else STREAM_COLUMNS
        with self._planned(bench, first_row) as (df, _):
            wanted = df.select(*columns).filter(F.col("value") < last)
            sink = {"format": "memory", "queryName": _CHECKED}
            _run(wanted, bench.data.folder, sink, batches)
            try:
                return Joined.of(bench.spark.table(_CHECKED).toArrow(), columns)
            finally:
                bench.spark.catalog.dropTempView(_CHECKED)

    def turn(self, bench: Bench, first_row: int, dropped: int, batches: int) -> Turn:
        """Run micro-batches from a position of the stream on and measure those after the dropped ones."""
        reads = JavaReads(bench.spark) if self.reads_files else None
        peaks: list[int] = []
        with self._planned(bench, first_row) as (df, mark):

            def watch(done: int) -> None:
                if reads is not None and done >= dropped:
                    reads.note(done)
                # A peak stays readable, so that looking for it once disturbs the measurement least.
                if self.has_workers and done >= dropped + batches:
                    peaks.extend(peer_memory.peaks_of_workers(mark))

            measured = _run(df, bench.data.folder, {"format": "noop"}, dropped + batches, watch)[dropped:]
        statistics = [batch for one in measured for batch in of_progress(one.observedMetrics)]
        read = [float(one.bytes_read) for one in statistics]
        return Turn(
            batch_ms=[float(one.durationMs["triggerExecution"]) for one in measured],
            add_batch_ms=[float(one.durationMs["addBatch"]) for one in measured],
            bytes_read=read or (reads.a_batch() if reads is not None else []),
            cache_hits=[one.hit_rate for one in statistics],
            peak_process_bytes=max(peaks, default=None),
        )

    @contextmanager
    def _planned(self, bench: Bench, first_row: int) -> Iterator[tuple[DataFrame, str]]:
        with own_workers(bench.spark, self.name) as mark:
            try:
                yield self.enriched(spark_stream(bench.spark, bench.data.situation, first_row), bench), mark
            finally:
                self.release()


def _run(
    df: DataFrame, folder: Path, sink: dict[str, str], batches: int, watch: Callable[[int], None] | None = None
) -> list[Any]:
    """Run a query for so many batches and return their progress; `watch` is told now and then how many are done."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="checkpoint-", ignore_cleanup_errors=True) as checkpoint:
        writer = df.writeStream.format(sink["format"]).option("checkpointLocation", checkpoint)
        query = (writer.queryName(sink["queryName"]) if "queryName" in sink else writer).start()
        try:
            while True:
                # The progress of all batches is hundreds of calls to Java, so that it is asked for only at the end.
                last = query.lastProgress
                done = 0 if last is None else last.batchId + (1 if last.numInputRows else 0)
                if watch is not None:
                    watch(done)
                if done >= batches:
                    return [one for one in query.recentProgress if one.numInputRows][:batches]
                if not query.isActive:
                    raise PeerFailedError("Its query on Spark stopped: run it again with --debug.") from (
                        query.exception()
                    )
                time.sleep(_PAUSE_SECONDS)
        finally:
            query.stop()
