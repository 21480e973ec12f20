"""Flink's JDBC look-up join with its cache, and the bound that joins nothing."""

from __future__ import annotations

from semistream.core.errors import InvalidSettingError
from semistream_lab.peers.contract import Bench, PeerFailedError
from semistream_lab.peers.data import TEXT_BYTES, Situation
from semistream_lab.peers.flink import statements
from semistream_lab.peers.flink.flink_peer import FILLING_FROM, FlinkPeer
from semistream_lab.peers.flink.installation import FlinkInstallation
from semistream_lab.peers.flink.jdbc_server import JdbcServer
from semistream_lab.peers.flink.running_job import Query
from semistream_lab.peers.flink.stream_files import rows_to_fill
from semistream_lab.peers.lookups.postgresql_table import TABLE_NAME, PostgresqlTable

_MAX_FILLING_ROWS = 3_000_000
_ARRAY_BYTES = 16  # the header of an array; objects are multiples of 8 bytes, pointers have 4

_KEY_BYTES = 24 + 24 + 24
"""A row object, its array of one field, a long."""
_VALUE_BYTES = 24 + 24 + 24 + 40 + 3 * 24 + 24
"""A list and its array of one row; a row object, its array of five fields, three longs and a double."""
_TEXT_BYTES = 24 + (24 + _ARRAY_BYTES + TEXT_BYTES) + (24 + 24 + 56 + 16 + _ARRAY_BYTES + TEXT_BYTES)
"""Flink's string; the string of Java in it; and its bytes once more, in a section of a memory segment with a flag."""
_ENTRY_BYTES = 48 + 16
"""An entry of the cache's hash table in the order of use, and its reference to the value."""
CACHED_ROW_BYTES = _KEY_BYTES + _VALUE_BYTES + _TEXT_BYTES + _ENTRY_BYTES


def cached_rows(situation: Situation) -> int:
    """Return how many rows the cache may hold: all tasks share one, which gets the memory of as many workers."""
    rows = situation.cores * situation.memory_bytes // CACHED_ROW_BYTES
    if rows < 1:
        raise InvalidSettingError("The memory is below one row of Flink's cache: give more.")
    return rows


class FlinkIdentity(FlinkPeer):
    """What Flink's source and sink can do: the bound of its join."""

    name = "flink-identity"
    summary = "Flink from its source to its sink without a join: the bound of Flink"
    joins = False

    def _query(self, bench: Bench, stream: str, output: str) -> Query:
        del bench
        return Query([stream, output], statements.query(joined=False))

    def _filling_rows(self, bench: Bench) -> int:
        del bench
        return 0


class FlinkJdbcLookup(FlinkPeer):
    """What Flink's users take: one query a key that the cache does not have, on the table of the `postgresql` peer."""

    name = "flink-jdbc-lookup"
    summary = "Flink's JDBC look-up join with its cache of rows, PostgreSQL behind it"
    keeps_to_memory = True

    def __init__(self, installation: FlinkInstallation, table: PostgresqlTable) -> None:
        super().__init__(installation)
        self._table = table

    def why_unavailable(self) -> str | None:
        """Return one sentence if Flink, its connector or the server is missing."""
        missing = super().why_unavailable() or self._installation.why_no_connector() or self._table.why_unavailable()
        if missing is None:
            try:
                JdbcServer.of(self._table.reached())
            except PeerFailedError as error:
                return str(error)
        return missing

    def prepare(self, bench: Bench) -> None:
        """Load the table."""
        cached_rows(bench.data.situation)
        super().prepare(bench)
        self._table.load(bench.data)

    def clean_up(self) -> None:
        """End the job, and drop the table if it was made here."""
        super().clean_up()
        self._table.drop()

    def _query(self, bench: Bench, stream: str, output: str) -> Query:
        situation = bench.data.situation
        server = JdbcServer.of(self._table.reached())
        master = statements.master_table(server, TABLE_NAME, cached_rows(situation))
        return Query(
            [stream, master, output],
            statements.query(joined=True),
            self._installation.connector_jars(),
            situation.cores * situation.memory_bytes,
        )

    def _filling_rows(self, bench: Bench) -> int:
        situation = bench.data.situation
        return rows_to_fill(situation, FILLING_FROM, cached_rows(situation), _MAX_FILLING_ROWS)
