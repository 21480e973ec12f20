"""Compares ways to enrich a stream from a table that stays in its database, in turns on one machine.

Ways, each over the same batches of generated keys: one query a row; the hand-written `mapInPandas` with one query a
batch and an LRU of as much memory as ours has; Flink's JDBC look-up join with its cache, if the environment says where
Flink is (`peers.md`, "With Flink"; for MariaDB the folder of jars needs mysql-connector-j); and `ss.enrich`, without a
shuffle, as a micro-batch has none: on the table in the database, on a mirror of it, and on a local folder that was
built from the same rows in files. The server is started on loopback with a temporary folder, as the tests start it,
and filled with rows of about 110 bytes. MariaDB has a buffer pool of 512 MB, since it reads past the system's page
cache, in which PostgreSQL's table is. Caches are filled by some batches before the first one that counts.

    python benchmarks/database_lookups.py --kind postgresql --rows 2000000 --batch 200000 --warm 4 --turns 5
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from build_by_spark import session
from flink_lookups import FlinkLookups
from pyspark.sql import DataFrame, SparkSession

import semistream as ss
from semistream.core.arrays import Int64Array
from semistream.generator.stream_keys import ZipfKeys
from semistream.joining.compiled_kernels import compile_kernels
from semistream.mirrors.refreshing import build_mirror
from semistream_lab.python_workers import own_workers

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from servers import mariadb, postgresql

COLUMNS = ("supplier", "price", "stock", "words")
SCHEMA = "row BIGINT, id BIGINT, supplier BIGINT, price DOUBLE, stock BIGINT, words STRING"
CACHED_ROW_BYTES = 400
"""What a row of Python values takes in an OrderedDict, its key and its place with it."""
_PAGES_OF_A_FILE = 4_000
ONE_BY_ONE = 2_000
"""One query a row is measured on so many rows, since it takes so long."""


def fill(server: Any, rows: int) -> None:
    """Make the master table."""
    numbers, number = f"generate_series(1, {rows}) AS numbers(n)", "n"
    if isinstance(server, mariadb.MariadbServer):
        numbers, number = f"seq_1_to_{rows}", "seq"
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE master (id bigint PRIMARY KEY, supplier bigint, price double precision, stock bigint, "
            "words varchar(80))"
        )
        words = f"concat('product number ', {number}, ', in a box with a ribbon and a card')"
        cursor.execute(
            f"INSERT INTO master SELECT {number}, {number} * 7, {number} / 4.0, mod({number}, 100), {words} "
            f"FROM {numbers}"
        )
        cursor.execute(
            "VACUUM ANALYZE master" if isinstance(server, postgresql.PostgresqlServer) else "ANALYZE TABLE master"
        )


class Answers:
    """Looks keys up by hand, as users write it; made in a worker at its first batch."""

    _of_process: Answers | None = None

    def __init__(self, connect: Callable[[], Any], capacity: int) -> None:
        self._connection = connect()
        self._capacity = capacity
        self._rows: OrderedDict[int, tuple[Any, ...]] = OrderedDict()

    @classmethod
    def here(cls, connect: Callable[[], Any], capacity: int) -> Answers:
        """Return the one of this process."""
        if cls._of_process is None:
            cls._of_process = cls(connect, capacity)
        return cls._of_process

    def of(self, keys: list[int]) -> dict[int, tuple[Any, ...]]:
        """Return the rows of keys, by one query for those that are not cached."""
        found = {}
        missing = []
        for key in dict.fromkeys(keys):
            row = self._rows.get(key)
            if row is None:
                missing.append(key)
            else:
                self._rows.move_to_end(key)
                found[key] = row
        if missing:
            query, value = QUERIES[type(self._connection).__module__.partition(".")[0]]
            with self._connection.cursor() as cursor:
                cursor.execute(query, (value(missing),))
                for key, *row in cursor.fetchall():
                    found[key] = self._rows[key] = tuple(row)
            while len(self._rows) > self._capacity:
                self._rows.popitem(last=False)
        return found


AS_FAST = 0.95
"""Two medians of five that differ by less are as fast as each other."""
SELECT = f"SELECT id, {', '.join(COLUMNS)} FROM master WHERE id"
QUERIES: dict[str, tuple[str, Callable[[list[int]], Any]]] = {
    "psycopg": (f"{SELECT} = ANY(%s)", list),
    "pymysql": (f"{SELECT} IN %s", tuple),
}


def by_hand(stream: DataFrame, connect: Callable[[], Any], capacity: int) -> DataFrame:
    """Return the stream enriched by a hand-written mapInPandas."""

    def enriched(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        answers = Answers.here(connect, capacity)
        for batch in batches:
            found = answers.of(batch["id"].tolist())
            nothing = (None,) * len(COLUMNS)
            rows = [found.get(key, nothing) for key in batch["id"].tolist()]
            yield pd.concat([batch.reset_index(drop=True), pd.DataFrame(rows, columns=list(COLUMNS))], axis=1)

    return stream.mapInPandas(enriched, SCHEMA)


def one_by_one(connect: Callable[[], Any], keys: list[int]) -> float:
    """Return the rows a second of one query a row."""
    answers = Answers(connect, 0)
    began = time.perf_counter()
    for key in keys:
        answers.of([key])
    return len(keys) / (time.perf_counter() - began)


@dataclass(frozen=True)
class Tables:
    """Where `ss.enrich` finds the same rows."""

    database: str
    mirror: ss.MasterTable
    folder: ss.MasterTable

    @classmethod
    def of(cls, server: Any, folder: Path, spark: SparkSession) -> Tables:
        """Make a mirror of the master table by Spark, and build a table from the same rows in files."""
        address = server.address("master", cache_for=3600)
        source = ss.DatabaseSource(server.address("master").replace("&key=id", ""))
        build_mirror(source, ss.MasterTable(folder / "mirror").address, "id", spark=spark)
        with ss.MasterTable(address).open() as store:
            pages = store.page_count
            for number, first in enumerate(range(0, pages, _PAGES_OF_A_FILE)):
                last = min(first + _PAGES_OF_A_FILE, pages) - 1
                rows = store.read(np.array([first]), np.array([last]))
                (folder / "files").mkdir(exist_ok=True)
                taken = rows.take(np.arange(len(rows.codes)), store.schema.names)
                pq.write_table(pa.Table.from_batches([taken]), folder / "files" / f"{number}.parquet")
        built = ss.MasterTable.build(spark.read.parquet(str(folder / "files")), folder / "folder", key="id")
        return cls(address, ss.MasterTable(folder / "mirror"), built)


def measure(kind: str, rows: int, batch: int, warm: int, turns: int, memory: int, exponent: float) -> None:
    """Start a server and print what each way achieves, turn after turn and in the median."""
    module = postgresql if kind == "postgresql" else mariadb
    os.environ |= {"PGPASSWORD": postgresql.PASSWORD, "MYSQL_PWD": mariadb.PASSWORD, "PYSPARK_PYTHON": sys.executable}
    server = module.new_server(*(["--innodb-buffer-pool-size=512M"] if kind == "mariadb" else []))
    compile_kernels()
    # Functions that go to workers carry this module by value, and nothing of the server but how to reach it.
    connect = _connector(kind, server.port, module.PASSWORD)
    flink, keys = None, ZipfKeys(rows, exponent, seed=1, ranks="shuffled")
    with tempfile.TemporaryDirectory(prefix="semistream-lookups-") as name:
        spark = session(Path(name), 2, "1g", {"spark.sql.execution.arrow.pyspark.enabled": "true"})
        try:
            fill(server, rows)
            tables = Tables.of(server, Path(name), spark)
            for way, table in (("mirror", tables.mirror), ("folder", tables.folder)):
                known = table.info()
                print(
                    f"{way}: {known['pages']:,} pages of {known['page_bytes']:,} bytes in {len(known['files'])} files"
                )
            spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", batch // 2)
            if (missing := FlinkLookups.why_not(kind)) is None:
                flink = FlinkLookups(kind, server.port, module.PASSWORD, keys, memory, Path(name))
                print(f"Flink's cache has room for {flink.cached_rows:,} rows", flush=True)
            else:
                print(f"without Flink: {missing}", flush=True)
            gathered: dict[str, list[float]] = {}
            for turn in range(warm + turns):
                keys.seek(turn * batch)
                drawn = keys.draw(batch)
                rates = {"one query a row": one_by_one(connect, drawn[:ONE_BY_ONE].tolist())}
                if flink is not None:
                    rates["Flink"], hits = flink.turn(drawn)
                    print(f"Flink's cache answered {hits:.1%}", end="; ")
                rates |= on_spark(spark, drawn, tables, connect, memory, turn)
                shown = {way: round(rate) for way, rate in rates.items()}
                print(turn, shown, "" if turn >= warm else "(not counted)", flush=True)
                for way, rate in rates.items() if turn >= warm else ():
                    gathered.setdefault(way, []).append(rate)
            medians = {way: median(rates) for way, rates in gathered.items()}
            ratios = {way: round(medians["enrich"] / rate, 2) for way, rate in medians.items()}
            print("median rows/s", {way: round(rate) for way, rate in medians.items()})
            print("enrich on the table in the database, times as fast as", ratios)
            for line in verdicts(medians):
                print(line)
        finally:
            if flink is not None:
                flink.close()
            spark.stop()
            server.stop()


def verdicts(medians: dict[str, float]) -> Iterator[str]:
    """Yield a line for each goal: what was reached, what is allowed, and whether that is enough."""
    for way, rival, least in (
        ("enrich", "one query a row", 10.0),
        ("enrich", "mapInPandas and LRU", 1.2),
        ("enrich", "Flink", 2.0),
        ("enrich, mirror", "enrich, folder", AS_FAST),
    ):
        if rival in medians:
            ratio = medians[way] / medians[rival]
            kept = "yes" if ratio >= least else "NO"
            yield f"{way} is {ratio:.2f} times as fast as {rival}; at least {least:g}: {kept}"


def on_spark(
    spark: SparkSession, keys: Int64Array, tables: Tables, connect: Callable[[], Any], memory: int, turn: int
) -> dict[str, float]:
    """Return the rows a second of the ways that are on Spark, one after the other on the same rows.

    Each has Python workers of its own, since all joins of a worker share its memory, and each turn begins with another.
    """
    frame = pd.DataFrame({"row": np.arange(len(keys)), "id": keys})
    stream = spark.createDataFrame(frame).repartition(2).cache()
    stream.count()
    ways: dict[str, Callable[[], DataFrame]] = {
        "mapInPandas and LRU": lambda: by_hand(stream, connect, memory // CACHED_ROW_BYTES)
    }
    for name, table in (
        ("enrich", tables.database),
        ("enrich, mirror", tables.mirror),
        ("enrich, folder", tables.folder),
    ):
        ways[name] = partial(ss.enrich, stream, table, on="id", how="left", memory=memory, partitioning="none")
    rates = {}
    for place in range(len(ways)):
        name = [*ways][(place + turn) % len(ways)]
        with own_workers(spark, name):
            enriched = ways[name]()
            began = time.perf_counter()
            enriched.write.format("noop").mode("overwrite").save()
        rates[name] = len(keys) / (time.perf_counter() - began)
    stream.unpersist()
    return {name: rates[name] for name in ways}


def _connector(kind: str, port: int, password: str) -> Callable[[], Any]:
    def connect() -> Any:
        if kind == "postgresql":
            import psycopg

            return psycopg.connect(
                host="127.0.0.1", port=port, user="postgres", password=password, dbname="postgres", autocommit=True
            )
        import pymysql

        return pymysql.connect(
            host="127.0.0.1", port=port, user="clerk", password=password, database="shop", autocommit=True
        )

    return connect


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=("postgresql", "mariadb"), default="postgresql")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--batch", type=int, default=200_000)
    parser.add_argument("--warm", type=int, default=4)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--memory", type=int, default=64_000_000)
    parser.add_argument("--exponent", type=float, default=1.0)
    chosen = parser.parse_args()
    measure(chosen.kind, chosen.rows, chosen.batch, chosen.warm, chosen.turns, chosen.memory, chosen.exponent)


if __name__ == "__main__":
    main()
