"""Compares ways to enrich a stream from a table that stays in its database, in turns on one machine.

Three ways, each over the same batches of generated keys: one query a row; the hand-written `mapInPandas` with one query
a batch and an LRU of as much memory as ours has; and `ss.enrich`, without a shuffle, as a micro-batch has none. The
server is started on loopback with a temporary folder, as the tests start it, and filled with rows of about 110 bytes.
MariaDB has a buffer pool of 512 MB, since it reads past the system's page cache, in which PostgreSQL's table is. Caches
are filled by some batches before the first one that counts.

    python benchmarks/database_lookups.py --kind postgresql --rows 2000000 --batch 200000 --warm 4 --turns 5
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession

import semistream as ss
from semistream.generator.stream_keys import ZipfKeys
from semistream.joining.compiled_kernels import compile_kernels

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from servers import mariadb, postgresql

COLUMNS = ("supplier", "price", "stock", "words")
SCHEMA = "row BIGINT, id BIGINT, supplier BIGINT, price DOUBLE, stock BIGINT, words STRING"
CACHED_ROW_BYTES = 400
"""What a row of Python values takes in an OrderedDict, its key and its place with it."""
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


def measure(kind: str, rows: int, batch: int, warm: int, turns: int, memory: int, exponent: float) -> None:
    """Start a server and print what each way achieves, turn after turn and in the median."""
    module = postgresql if kind == "postgresql" else mariadb
    os.environ |= {"PGPASSWORD": postgresql.PASSWORD, "MYSQL_PWD": mariadb.PASSWORD, "PYSPARK_PYTHON": sys.executable}
    server = module.new_server(*(["--innodb-buffer-pool-size=512M"] if kind == "mariadb" else []))
    compile_kernels()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", batch // 2)
    # Functions that go to workers carry this module by value, and nothing of the server but how to reach it.
    connect = _connector(kind, server.port, module.PASSWORD)
    try:
        fill(server, rows)
        keys = ZipfKeys(rows, exponent, seed=1, ranks="shuffled")
        gathered: dict[str, list[float]] = {"one query a row": [], "mapInPandas and LRU": [], "enrich": []}
        for turn in range(warm + turns):
            drawn = keys.draw(batch)
            frame = pd.DataFrame({"row": np.arange(batch), "id": drawn})
            stream = spark.createDataFrame(frame).repartition(2).cache()
            stream.count()
            rates = {"one query a row": one_by_one(connect, drawn[:ONE_BY_ONE].tolist())}
            ways = {
                "mapInPandas and LRU": by_hand(stream, connect, memory // CACHED_ROW_BYTES),
                "enrich": ss.enrich(
                    stream,
                    server.address("master", cache_for=3600),
                    on="id",
                    how="left",
                    memory=memory,
                    partitioning="none",
                ),
            }
            for name, enriched in ways.items():
                began = time.perf_counter()
                enriched.write.format("noop").mode("overwrite").save()
                rates[name] = batch / (time.perf_counter() - began)
            stream.unpersist()
            counts = turn >= warm
            shown = {name: round(rate) for name, rate in rates.items()}
            print(turn, shown, "" if counts else "(not counted)", flush=True)
            if counts:
                for name, rate in rates.items():
                    gathered[name].append(rate)
        print("median rows/s", {name: round(median(rates)) for name, rates in gathered.items()})
    finally:
        spark.stop()
        server.stop()


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
