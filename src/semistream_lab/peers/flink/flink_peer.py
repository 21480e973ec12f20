"""A peer that is a query of Flink, and how that is checked and measured."""

from __future__ import annotations

import math
import shutil
import tempfile
from abc import abstractmethod
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc

from semistream_lab.peers.contract import Bench, Peer, Turn
from semistream_lab.peers.data import MASTER_SCHEMA, PAYLOAD, Joined
from semistream_lab.peers.flink import statements
from semistream_lab.peers.flink.installation import FlinkInstallation
from semistream_lab.peers.flink.job_progress import JobProgress, Sample, at_rows, samples_until
from semistream_lab.peers.flink.running_job import Query, RunningJob
from semistream_lab.peers.flink.stream_files import write_stream

_LOGS = "flink-logs"
FILLING_FROM = 25_000_000
"""A position of the stream where no turn and no check begins."""
_TAIL_SHARE = 0.1


class FlinkPeer(Peer):
    """A query of Flink on an endless stream; its job goes on from turn to turn, so that its cache stays warm.

    A turn puts files where the job looks for them. Its time is the one between two numbers of rows that the sink has
    counted: after the dropped batches, and before the end, where a task may have nothing left to do.
    """

    on_spark = False

    def __init__(self, installation: FlinkInstallation) -> None:
        self._installation = installation
        self._folder: Path | None = None
        self._job: RunningJob | None = None
        self._progress: JobProgress | None = None
        self._stream: Path | None = None
        self._rows = 0
        """That were put into the stream of the job."""

    def why_unavailable(self) -> str | None:
        """Return one sentence if Flink is missing."""
        return self._installation.why_unavailable()

    @abstractmethod
    def _query(self, bench: Bench, stream: str, output: str) -> Query:
        """Return what is run, with the statements that make the tables of the stream and of the output."""

    @abstractmethod
    def _filling_rows(self, bench: Bench) -> int:
        """Return how many rows fill the cache before the first turn."""

    def prepare(self, bench: Bench) -> None:
        """Make the folder of the stream."""
        self._folder = Path(tempfile.mkdtemp(dir=bench.data.folder, prefix=f"{self.name}-"))

    def check(self, bench: Bench, first_row: int, batches: int) -> Joined:
        """Join the first rows from a position of the stream on and return what came out."""
        stream, output = self._new_folder(), self._new_folder()
        write_stream(stream, "rows", bench.data.situation, first_row, batches * bench.data.situation.batch_rows)
        tables = (
            statements.stream_table(stream, endless=False),
            statements.output_table(joined=self.joins, folder=output),
        )
        job = self._started(bench, self._query(bench, *tables), stays=False)
        try:
            job.answer()
        finally:
            job.close()
        return Joined.of(_written(output, joined=self.joins), statements.columns(joined=self.joins))

    def turn(self, bench: Bench, first_row: int, dropped: int, batches: int) -> Turn:
        """Give batches from a position of the stream on to the job and measure those after the dropped ones."""
        self._start_and_fill(bench)
        assert self._job is not None
        batch_rows = bench.data.situation.batch_rows
        begin = self._rows + dropped * batch_rows
        end = begin + batches * batch_rows
        samples = self._given(bench, first_row, end - self._rows + math.ceil((end - self._rows) * _TAIL_SHARE))
        before, after = at_rows(samples, begin), at_rows(samples, end)
        hits, misses = after.hits - before.hits, after.misses - before.misses
        return Turn(
            batch_ms=[(after.seconds - before.seconds) * 1000 / batches],
            cache_hits=[hits / (hits + misses)] if hits + misses else [],
            peak_process_bytes=self._job.peak_bytes(),
        )

    def clean_up(self) -> None:
        """End the job and remove the files of its stream."""
        if self._job is not None:
            self._job.close()
            self._job = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _start_and_fill(self, bench: Bench) -> None:
        """Start the job before the first turn, and let as many rows pass as fill its cache."""
        if self._job is not None:
            return
        self._stream = self._new_folder()
        tables = statements.stream_table(self._stream, endless=True), statements.output_table(joined=self.joins)
        self._job = self._started(bench, self._query(bench, *tables), stays=True)
        self._progress = JobProgress(self._job.port, self._job.answer()["job"], cache=self.joins)
        if rows := self._filling_rows(bench):
            self._given(bench, FILLING_FROM, rows)

    def _given(self, bench: Bench, first_row: int, rows: int) -> list[Sample]:
        """Put rows into the stream of the job and return how it came through them."""
        assert self._stream is not None
        assert self._progress is not None
        write_stream(self._stream, f"rows-{self._rows}", bench.data.situation, first_row, rows)
        self._rows += rows
        return samples_until(self._progress, self._rows)

    def _started(self, bench: Bench, query: Query, *, stays: bool) -> RunningJob:
        assert self._installation.python is not None
        logs, cores = bench.data.folder / _LOGS, bench.data.situation.cores
        return RunningJob(self._installation.python, query, cores, logs, name=self.name, stays=stays)

    def _new_folder(self) -> Path:
        assert self._folder is not None
        return Path(tempfile.mkdtemp(dir=self._folder))


def _written(folder: Path, *, joined: bool) -> pa.Table:
    """Return the rows that Flink has written as CSV; what is empty there is null."""
    names = statements.columns(joined=joined)
    types = {name: MASTER_SCHEMA.field(name).type if name in PAYLOAD else pa.int64() for name in names}
    read = pc.ReadOptions(column_names=names)
    convert = pc.ConvertOptions(column_types=types, strings_can_be_null=True, null_values=[""])
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.stat().st_size]
    tables = [pc.read_csv(file, read, convert_options=convert) for file in files]
    schema = pa.schema(list(types.items()))
    return pa.concat_tables([schema.empty_table(), *tables])
