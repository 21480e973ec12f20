"""Nexmark's q0 and q13 in Flink's SQL, for `nexmark_q13.py`; Flink is installed as `peers.md` says, "With Flink".

Bids come from Flink's own generator, in memory, an epoch of 46 after the other. The side input is a table of PostgreSQL
behind Flink's JDBC look-up join, whose cache may hold what all workers of `enrich` have together.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from postgresql_server import PostgresqlServer, started_server

from semistream_lab.peers.flink.installation import JARS_VARIABLE, PYTHON_VARIABLE, FlinkInstallation
from semistream_lab.peers.flink.job_progress import JobProgress
from semistream_lab.peers.flink.running_job import Query, RunningJob
from semistream_lab.peers.flink.statements import literal, quoted

_VARIABLES = (PYTHON_VARIABLE, JARS_VARIABLE)
_PASSWORD = "nexmark"
_EPOCHS = 3_000_000
_BIDS_OF_AN_EPOCH = 46
_ROW_BYTES = 72 + 136 + 88 + 64
"""A cached row in Java as `peers.md` counts it: key, row with a long, a text of some eight characters, entry."""
_COLUMNS = {"auction": "BIGINT", "bidder": "BIGINT", "price": "BIGINT", "dateTime": "TIMESTAMP(3)"}


class NexmarkOnFlink:
    """Runs a query of Nexmark as a job of Flink for some seconds, and says how many bids a second came through."""

    def __init__(self, installation: FlinkInstallation, cores: int, memory_bytes: int, base_time_ms: int) -> None:
        """Start the server of the side inputs."""
        self._installation = installation
        self._cores = cores
        self._cache_bytes = cores * memory_bytes
        self._base_time_ms = base_time_ms
        self._server: PostgresqlServer = started_server(_PASSWORD)
        self._folder = tempfile.TemporaryDirectory(prefix="semistream-flink-")

    @staticmethod
    def installed() -> FlinkInstallation | str:
        """Return what is installed, or one sentence about what is missing."""
        python, jars = (Path(value) if (value := os.environ.get(name)) else None for name in _VARIABLES)
        installation = FlinkInstallation(python, jars)
        return installation.why_unavailable() or installation.why_no_connector() or installation

    def fill(self, side_rows: int) -> None:
        """Make the table of a side input."""
        from psycopg.sql import SQL, Identifier, Literal

        named = {"table": Identifier(_side_table(side_rows)), "last": Literal(side_rows - 1)}
        with self._server.connect() as connection:
            rows = "SELECT n::bigint AS key, n::text AS value FROM generate_series(0, {last}) AS s(n)"
            connection.execute(SQL("CREATE TABLE {table} AS " + rows).format(**named))
            connection.execute(SQL("ALTER TABLE {table} ADD PRIMARY KEY (key)").format(**named))

    def rate(self, side_rows: int | None, warm_seconds: float, seconds: float) -> float:
        """Return the bids a second of q0, or of q13 if there is a side input, once some seconds are over."""
        job = RunningJob(
            self._python, self._query(side_rows), self._cores, Path(self._folder.name), name="nexmark", stays=True
        )
        try:
            progress = JobProgress(job.port, job.answer()["job"], cache=False)
            while not progress.sample().rows:
                time.sleep(0.2)
            time.sleep(warm_seconds)
            first = progress.sample()
            time.sleep(seconds)
            last = progress.sample()
            assert progress.is_running(), "the generator has ended"
            return (last.rows - first.rows) / (last.seconds - first.seconds)
        finally:
            job.close()

    def close(self) -> None:
        """Stop the server."""
        self._server.stop()
        self._folder.cleanup()

    @property
    def _python(self) -> Path:
        assert self._installation.python is not None
        return self._installation.python

    def _query(self, side_rows: int | None) -> Query:
        names = [*_COLUMNS, "extra" if side_rows is None else "value"]
        types = {**_COLUMNS, "extra": "STRING", "value": "STRING"}
        generator = {
            "connector": "datagen",
            "fields.epoch.kind": "sequence",
            "fields.epoch.start": "0",
            "fields.epoch.end": str(_EPOCHS),
        }
        tables = [
            _table("epochs", ["`epoch` BIGINT", "`at_time` AS PROCTIME()"], generator),
            _table("output", [f"{quoted(name)} {types[name]}" for name in names], {"connector": "blackhole"}),
        ]
        into = f"INSERT INTO `output` SELECT {', '.join(map(quoted, names))} FROM"
        if side_rows is None:
            return Query(tables, f"{into} ({self._bids()})", (), self._cache_bytes)
        side = {
            "connector": "jdbc",
            "url": f"jdbc:postgresql://127.0.0.1:{self._server.port}/postgres",
            "table-name": _side_table(side_rows),
            "username": "postgres",
            "password": _PASSWORD,
            "lookup.cache": "PARTIAL",
            "lookup.partial-cache.max-rows": str(self._cache_bytes // _ROW_BYTES),
        }
        tables.append(_table("side", ["`key` BIGINT", "`value` STRING", "PRIMARY KEY (`key`) NOT ENFORCED"], side))
        return Query(
            tables,
            f"{into} ({self._bids()}) AS b JOIN `side` FOR SYSTEM_TIME AS OF b.`at_time` AS s "
            f"ON MOD(b.`auction`, {side_rows}) = s.`key`",
            self._installation.connector_jars(),
            self._cache_bytes,
        )

    def _bids(self) -> str:
        """Return the bids as `nexmark_q13.bids` makes them, with Flink's random numbers."""
        # Which depends on the epoch, since Flink would join the two with state otherwise.
        numbers = ", ".join(f"`epoch` * {_BIDS_OF_AN_EPOCH} + {within}" for within in range(_BIDS_OF_AN_EPOCH))
        last_auction = "(`epoch` * 3 + 2)"
        oldest = f"GREATEST({last_auction} - 100, 0)"
        active = "LEAST(`epoch`, 1000)"
        event = f"(`epoch` * 50 + 4 + MOD(`number`, {_BIDS_OF_AN_EPOCH}))"
        return (
            "SELECT `at_time`, "
            f"1000 + CASE WHEN RAND_INTEGER(2) > 0 THEN {last_auction} / 100 * 100 "
            f"ELSE {oldest} + RAND_INTEGER(CAST({last_auction} - {oldest} + 11 AS INT)) END AS `auction`, "
            "1000 + CASE WHEN RAND_INTEGER(4) > 0 THEN `epoch` / 100 * 100 + 1 "
            f"ELSE `epoch` - {active} + RAND_INTEGER(CAST({active} + 11 AS INT)) END AS `bidder`, "
            "CAST(POWER(10, RAND() * 6) * 100 AS BIGINT) AS `price`, "
            f"CAST(TO_TIMESTAMP_LTZ({self._base_time_ms} + {event} / 10, 3) AS TIMESTAMP(3)) AS `dateTime`, "
            "SUBSTRING(HEX(RAND_INTEGER(2147483647)), 1, RAND_INTEGER(16)) AS `extra` "
            f"FROM `epochs` CROSS JOIN UNNEST(ARRAY[{numbers}]) AS w(`number`)"
        )


def _side_table(side_rows: int) -> str:
    return f"side_{side_rows}"


def _table(name: str, columns: list[str], options: dict[str, str]) -> str:
    given = ", ".join(f"{literal(option)} = {literal(value)}" for option, value in options.items())
    return f"CREATE TEMPORARY TABLE {quoted(name)} ({', '.join(columns)}) WITH ({given})"
