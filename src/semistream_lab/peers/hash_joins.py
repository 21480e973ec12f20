"""Libraries that join in memory, without Spark: what a machine can do if the whole master table fits into it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import pyarrow as pa

from semistream_lab.peers import own_process
from semistream_lab.peers.contract import Bench, Peer, Turn
from semistream_lab.peers.data import Joined
from semistream_lab.peers.optional_package import why_missing

_PROCESS = "semistream_lab.peers.hash_join_process"


class HashJoin(ABC):
    """A library with the master table in its memory."""

    @abstractmethod
    def load(self, parquet: Path, cores: int) -> None:
        """Read the master table."""

    @abstractmethod
    def joined(self, stream: pa.Table) -> pa.Table:
        """Return the left join of a batch of the stream."""


class DuckdbJoin(HashJoin):
    """DuckDB with a table in memory."""

    def load(self, parquet: Path, cores: int) -> None:
        """Read the master table."""
        import duckdb

        self._connection = duckdb.connect(":memory:", config={"threads": cores})
        files = str(parquet / "*.parquet")
        self._connection.execute("CREATE TABLE master AS SELECT * FROM read_parquet(?)", [files])

    def joined(self, stream: pa.Table) -> pa.Table:
        """Return the left join of a batch of the stream."""
        self._connection.register("stream", stream)
        result = self._connection.execute("SELECT * FROM stream LEFT JOIN master USING (key)")
        return result.to_arrow_table()


class PolarsJoin(HashJoin):
    """Polars with a frame in memory."""

    def load(self, parquet: Path, cores: int) -> None:
        """Read the master table; the number of threads is told by the environment."""
        del cores
        import polars

        self._polars = polars
        self._master = self._polars.read_parquet(parquet / "*.parquet")

    def joined(self, stream: pa.Table) -> pa.Table:
        """Return the left join of a batch of the stream."""
        return self._polars.from_arrow(stream).join(self._master, on="key", how="left").to_arrow()


HASH_JOINS: dict[str, type[HashJoin]] = {"duckdb": DuckdbJoin, "polars": PolarsJoin}


class HashJoinPeer(Peer):
    """A library in a process of its own, so that its memory can be told apart."""

    on_spark = False
    reads_all = True

    def why_unavailable(self) -> str | None:
        """Return one sentence if the package is missing."""
        return why_missing(self.name)

    def prepare(self, bench: Bench) -> None:
        """Write the Parquet files."""
        bench.data.build_parquet()

    def check(self, bench: Bench, first_row: int, batches: int) -> Joined:
        """Join the first rows from a position of the stream on and return what came out."""
        measured = self._run(bench, {"first_row": first_row, "checked": batches, "dropped": 0, "batches": 0})
        return Joined(measured["rows"], measured["checksum"])

    def turn(self, bench: Bench, first_row: int, dropped: int, batches: int) -> Turn:
        """Run batches from a position of the stream on and measure those after the dropped ones."""
        asked = {"first_row": first_row, "checked": 0, "dropped": dropped, "batches": batches}
        measured = self._run(bench, asked)
        return Turn(batch_ms=measured["batch_ms"], peak_process_bytes=measured["peak_bytes"])

    def _run(self, bench: Bench, asked: dict[str, int]) -> dict[str, Any]:
        situation = bench.data.situation
        order = {"library": self.name, "parquet": str(bench.data.parquet), "situation": vars(situation), **asked}
        return own_process.run(_PROCESS, order, {"POLARS_MAX_THREADS": str(situation.cores)})


class Duckdb(HashJoinPeer):
    """DuckDB."""

    name = "duckdb"
    summary = "DuckDB without Spark, all in memory"


class Polars(HashJoinPeer):
    """Polars."""

    name = "polars"
    summary = "Polars without Spark, all in memory"
