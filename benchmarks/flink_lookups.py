"""Flink's JDBC look-up join on the table of `database_lookups.py`; installed as `peers.md` says, "With Flink".

Its job goes on from turn to turn, so that its cache stays warm: a turn puts files into the folder that its source
watches, and its time is the one between two numbers of rows that its sink has counted.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from semistream.core.arrays import Int64Array
from semistream.generator.stream_keys import ZipfKeys
from semistream_lab.peers.flink.installation import JARS_VARIABLE, PYTHON_VARIABLE, FlinkInstallation
from semistream_lab.peers.flink.job_progress import JobProgress, Sample, at_rows, samples_until
from semistream_lab.peers.flink.lookup_join import CACHED_ROW_BYTES
from semistream_lab.peers.flink.running_job import Query, RunningJob
from semistream_lab.peers.flink.statements import literal, quoted

CORES = 2
ROW_BYTES = CACHED_ROW_BYTES - 16
"""What the peers' row takes in Java, whose text is longer by some 10 bytes and is there twice."""
MAX_FILLING_ROWS = 3_000_000
FILLING_FROM = 1_000_000_000
"""A position of the stream that no batch reaches."""
_TYPES = {"supplier": "BIGINT", "price": "DOUBLE", "stock": "BIGINT", "words": "STRING"}
_URLS = {
    "postgresql": "jdbc:postgresql://127.0.0.1:{}/postgres",
    "mariadb": "jdbc:mysql://127.0.0.1:{}/shop?useSSL=false",
}
_USERS = {"postgresql": "postgres", "mariadb": "clerk"}
_DRIVERS = {"postgresql": "postgresql-[0-9]*.jar", "mariadb": "mysql-connector-j-[0-9]*.jar"}


class FlinkLookups:
    """The job, with a cache of as many rows as fit into the memory of all workers of the others together."""

    def __init__(self, kind: str, port: int, password: str, keys: ZipfKeys, memory: int, folder: Path) -> None:
        """Start the job and let as many rows pass as fill its cache."""
        self._keys = keys
        self._stream = Path(tempfile.mkdtemp(dir=folder))
        self._rows = 0
        self.cached_rows = CORES * memory // ROW_BYTES
        jars = Path(os.environ[JARS_VARIABLE])
        options = {
            "connector": "jdbc",
            "url": _URLS[kind].format(port),
            "table-name": "master",
            "username": _USERS[kind],
            "password": password,
            "lookup.cache": "PARTIAL",
            "lookup.partial-cache.max-rows": str(self.cached_rows),
        }
        files = {"connector": "filesystem", "path": self._stream.as_uri(), "format": "csv"}
        payload = [f"{quoted(name)} {of_type}" for name, of_type in _TYPES.items()]
        stream = ["`row` BIGINT", "`id` BIGINT"]
        query = Query(
            [
                _table("stream", [*stream, "at_time AS PROCTIME()"], {**files, "source.monitor-interval": "200 ms"}),
                _table("master", ["`id` BIGINT", *payload, "PRIMARY KEY (`id`) NOT ENFORCED"], options),
                _table("output", [*stream, *payload], {"connector": "blackhole"}),
            ],
            f"INSERT INTO `output` SELECT s.`row`, s.`id`, {', '.join(f'm.{quoted(name)}' for name in _TYPES)} "
            "FROM `stream` AS s LEFT JOIN `master` FOR SYSTEM_TIME AS OF s.at_time AS m ON s.`id` = m.`id`",
            [jar.resolve() for name in ("flink-connector-jdbc-[0-9]*.jar", _DRIVERS[kind]) for jar in jars.glob(name)],
            CORES * memory,
        )
        self._job = RunningJob(
            Path(os.environ[PYTHON_VARIABLE]), query, CORES, folder / "flink-logs", name="flink", stays=True
        )
        self._progress = JobProgress(self._job.port, self._job.answer()["job"], cache=True)
        self._fill()

    @staticmethod
    def why_not(kind: str) -> str | None:
        """Return what is missing, in one sentence."""
        named = {name: os.environ.get(name) for name in (PYTHON_VARIABLE, JARS_VARIABLE)}
        python = named[PYTHON_VARIABLE]
        missing = FlinkInstallation(Path(python) if python else None).why_unavailable()
        if missing is None and not (named[JARS_VARIABLE] and [*Path(named[JARS_VARIABLE]).glob(_DRIVERS[kind])]):
            return f"The folder of {JARS_VARIABLE} must have a jar {_DRIVERS[kind]}."
        return missing

    def turn(self, keys: Int64Array) -> tuple[float, float]:
        """Return the rows a second and the share of hits on these keys; a tenth of other rows comes before and after.

        No task runs dry at the end of the keys, and the time to find the files does not count.
        """
        others = self._drawn(FILLING_FROM + MAX_FILLING_ROWS + self._rows, len(keys) // 5)
        begin = self._rows + len(others) // 2
        samples = self._given(np.concatenate([others[: len(others) // 2], keys, others[len(others) // 2 :]]))
        before, after = at_rows(samples, begin), at_rows(samples, begin + len(keys))
        hits, misses = after.hits - before.hits, after.misses - before.misses
        return len(keys) / (after.seconds - before.seconds), hits / (hits + misses)

    def close(self) -> None:
        """End the job."""
        self._job.close()

    def _fill(self) -> None:
        seen = np.zeros(self._keys.key_count + 1, dtype=np.bool_)
        rows, step = 0, 100_000
        while rows < MAX_FILLING_ROWS and int(seen.sum()) < self.cached_rows:
            seen[self._drawn(FILLING_FROM + rows, step)] = True
            rows += step
        self._given(self._drawn(FILLING_FROM, rows))

    def _drawn(self, position: int, count: int) -> Int64Array:
        """Return keys of the same stream from a position that the batches do not reach."""
        self._keys.seek(position)
        return self._keys.draw(count)

    def _given(self, keys: Int64Array) -> list[Sample]:
        hidden = self._stream / f".rows-{self._rows}"
        hidden.mkdir()
        tasks = np.arange(len(keys)) // 1000 % CORES
        for task in range(CORES):
            own = np.flatnonzero(tasks == task)
            rows = pa.table({"row": own + self._rows, "id": keys[own]})
            pc.write_csv(rows, hidden / f"{task}.csv", pc.WriteOptions(include_header=False))
        hidden.replace(self._stream / f"rows-{self._rows}")
        self._rows += len(keys)
        return samples_until(self._progress, self._rows)


def _table(name: str, columns: list[str], options: dict[str, str]) -> str:
    given = ", ".join(f"{literal(option)} = {literal(value)}" for option, value in options.items())
    return f"CREATE TEMPORARY TABLE {quoted(name)} ({', '.join(columns)}) WITH ({given})"
