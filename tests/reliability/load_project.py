"""A pipeline under load: files arrive at a rate that can be changed, and what the pipeline holds is sampled."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pipeline_process import PipelineProcess

import semistream as ss

PRODUCTS = 400_000
_FILE_SECONDS = 0.2
_KEPT_FILES = 200
_PIPELINE = """\
[pipeline]
name = "load"
checkpoint = "state"
[source]
format = "parquet"
path = "incoming"
schema = "sale_id BIGINT, product_id BIGINT"
max_files_per_trigger = 200
[enrich]
memory = "16MB"
[[dimension]]
table = "products"
on = "product_id"
how = "left"
[sink]
format = "parquet"
path = "warehouse"
[statistics]
json_lines = "lines.jsonl"
[spark]
"spark.driver.memory" = "512m"
"""


def make_project(folder: Path, seed: int) -> Path:
    """Build a master table three times the memory of a worker, and return the pipeline's file."""
    keys = np.random.default_rng(seed).permutation(PRODUCTS)
    rows = pa.table({"product_id": keys, "price": keys % 1_000, "name": [f"{key:0100d}" for key in keys]})
    ss.MasterTable.build(rows, folder / "products", key="product_id")
    (folder / "incoming").mkdir()
    file = folder / "pipeline.toml"
    file.write_text(_PIPELINE)
    return file


class Feeder(threading.Thread):
    """Lets files arrive so that `rate` rows come each second; files that were processed are removed."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(daemon=True)
        self.rate = 0.0
        self.fed = 0
        self._incoming = folder / "incoming"
        self._progress = Progress(folder / "lines.jsonl")
        self._random = np.random.default_rng(seed)
        self._files: list[tuple[Path, int]] = []
        self._stopped = threading.Event()
        self.error: BaseException | None = None

    @property
    def backlog(self) -> int:
        """Rows that have arrived and are in no finished batch."""
        return self.fed - self._progress.rows()

    def run(self) -> None:
        """Write files until stopped."""
        try:
            due, owed, number = time.monotonic(), 0.0, 0
            while not self._stopped.wait(max(0.0, due - time.monotonic())):
                due += _FILE_SECONDS
                owed += self.rate * _FILE_SECONDS
                if owed >= 1:
                    self._write(number, int(owed))
                    owed -= int(owed)
                    number += 1
                if number % 50 == 0:
                    self._remove_processed()
        except BaseException as error:
            self.error = error

    def stop(self) -> None:
        """Let no more files arrive, and raise what went wrong."""
        self._stopped.set()
        self.join()
        if self.error is not None:
            raise self.error

    def _write(self, number: int, rows: int) -> None:
        # Keys whose logarithm is uniform: a few of them are asked for often, as with an exponent of 1.
        keys = (PRODUCTS ** self._random.random(rows)).astype(np.int64) - 1
        table = pa.table({"sale_id": np.arange(self.fed, self.fed + rows), "product_id": keys})
        hidden = self._incoming / f".{number:08d}.parquet"
        pq.write_table(table, hidden)
        hidden.rename(hidden.with_name(hidden.name[1:]))
        self.fed += rows
        self._files.append((hidden.with_name(hidden.name[1:]), self.fed))

    def _remove_processed(self) -> None:
        done = self._progress.rows()
        old = [file for file, until in self._files if until <= done][:-_KEPT_FILES]
        for file in old:
            file.unlink(missing_ok=True)
        self._files = self._files[len(old) :]


class Progress:
    """Counts the rows of finished batches, as the statistics tell them."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read_bytes = 0
        self._rows = 0
        self._lock = threading.Lock()

    def rows(self) -> int:
        """Return the rows of all batches so far."""
        with self._lock:
            if self._file.exists():
                with self._file.open("rb") as lines:
                    lines.seek(self._read_bytes)
                    for line in lines:
                        if not line.endswith(b"\n"):
                            break
                        self._read_bytes += len(line)
                        self._rows += json.loads(line)["batch_rows_in"]
            return self._rows


@dataclass(frozen=True)
class Held:
    """What a pipeline holds at a moment."""

    worker_bytes: int
    """Of the largest worker."""
    driver_bytes: int
    java_bytes: int
    handles: int
    pins: int
    hot: int
    logs: int
    """Entries of the checkpoint's logs of offsets and commits."""


def held(process: PipelineProcess, folder: Path) -> Held:
    """Return what the pipeline holds now."""
    workers, java = process.workers(), process.java()
    driver = psutil.Process(process.process_id)
    family = [driver, *workers, *([java] if java is not None else [])]
    return Held(
        worker_bytes=max((_of(worker, _resident) for worker in workers), default=0),
        driver_bytes=_of(driver, _resident),
        java_bytes=_of(java, _resident) if java is not None else 0,
        handles=sum(_of(each, psutil.Process.num_fds) for each in family),
        pins=_files(folder / "products" / "pins"),
        hot=_files(folder / "products" / "hot"),
        logs=sum(_files(folder / "state" / log, "[0-9]*") for log in ("offsets", "commits")),
    )


def trend(values: list[float]) -> tuple[float, float]:
    """Return the medians of the first and the last third."""
    third = max(1, len(values) // 3)
    return statistics.median(values[:third]), statistics.median(values[-third:])


def _of(process: psutil.Process, measure: Callable[[psutil.Process], int]) -> int:
    with suppress(psutil.NoSuchProcess):
        return measure(process)
    return 0


def _resident(process: psutil.Process) -> int:
    size: int = process.memory_info().rss
    return size


def _files(folder: Path, pattern: str = "*") -> int:
    return sum(path.is_file() for path in folder.rglob(pattern)) if folder.is_dir() else 0
