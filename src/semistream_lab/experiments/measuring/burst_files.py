"""A bursty, skewed stream as files, each with the rows of one micro-batch, so that all runs on Spark get the same."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from semistream.generator import BurstyArrivals, ZipfKeys
from semistream_lab.experiments.point import Point

FILL_BATCHES, SETTLING_BATCHES, MEASURED_BATCHES = 2, 8, 12
_FILL_SHARE = 0.05
"""A micro-batch that fills the cache has as many rows as this part of the master table."""
_MEAN_SHARE = 0.01
"""So many rows, as a part of the master table, has a later micro-batch on average."""
_STEPS_A_BATCH = 200
"""Steps of the bursty arrivals; the slowest source changes every few micro-batches."""
_FIRST_MOMENT = 1_600_000_000
"""When the first file was written, as Spark is told: files are read in the order of their times."""


@dataclass(frozen=True)
class BurstFiles:
    """The folder of the files, and how many rows each has."""

    folder: Path
    rows: tuple[int, ...]

    @property
    def first_measured(self) -> int:
        """The first micro-batch that counts."""
        return len(self.rows) - MEASURED_BATCHES

    @property
    def measured_rows(self) -> int:
        """The rows of the micro-batches that count."""
        return sum(self.rows[self.first_measured :])

    @classmethod
    def of(cls, point: Point, folder: Path) -> BurstFiles:
        """Return the stream of a point, written if it is not there."""
        name = f"stream-{point.master_rows}-{point.exponent:g}-{point.ranks}-{point.seed}"
        files = cls(folder / name, _sizes(point))
        if not files.folder.exists():
            files._write(point)
        return files

    def _write(self, point: Point) -> None:
        keys = ZipfKeys(point.master_rows, point.exponent, seed=point.seed, ranks=point.ranks)
        unfinished = self.folder.with_name(f".{self.folder.name}.{os.getpid()}")
        unfinished.mkdir(parents=True, exist_ok=True)
        position = 0
        for number, count in enumerate(self.rows):
            rows = {"key": keys.draw(count), "number": np.arange(position, position + count)}
            file = unfinished / f"{number:05d}.parquet"
            pq.write_table(pa.table(rows), file)
            os.utime(file, (_FIRST_MOMENT + number, _FIRST_MOMENT + number))
            position += count
        unfinished.replace(self.folder)


def _sizes(point: Point) -> tuple[int, ...]:
    """Return how many rows come in each micro-batch: large ones that fill the cache, then bursts."""
    steady = SETTLING_BATCHES + MEASURED_BATCHES
    arrivals = BurstyArrivals(1 / _STEPS_A_BATCH, point.seed, mean_rate=_MEAN_SHARE * point.master_rows)
    arrived = [arrivals.arrived_by(float(second)) for second in range(steady + 1)]
    fill = max(1, round(_FILL_SHARE * point.master_rows))
    return (*[fill] * FILL_BATCHES, *(max(1, count) for count in np.diff(arrived).tolist()))
