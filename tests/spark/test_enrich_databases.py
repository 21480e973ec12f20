"""`enrich` with tables of real databases equals Spark's own join, forgets what is old, and shows no password."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from enrich_runs import SalesStream, multiset, products, sales, spark_join
from pyspark.sql import SparkSession

import semistream as ss
from servers import mariadb as mariadb_servers
from servers import postgresql as postgresql_servers

TYPES = {"product_id": "bigint", "name": "varchar(60)", "price": "int"}
CANARIES = (mariadb_servers.PASSWORD, postgresql_servers.PASSWORD)


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Any]:
    """Return each kind of server; workers have the passwords in their environment, as a cluster gives them."""
    # Spark may have been started before the server, so that its workers do not inherit them.
    passwords = {"PGPASSWORD": postgresql_servers.PASSWORD, "MYSQL_PWD": mariadb_servers.PASSWORD}
    spark.sparkContext.environment |= passwords
    yield request.getfixturevalue(request.param)
    for name in passwords:
        del spark.sparkContext.environment[name]


@pytest.mark.parametrize("how", ["left", "anti"])
def test_a_batch_equals_sparks_own_join(spark: SparkSession, server: Any, how: str) -> None:
    server.load("products", products(500), TYPES, "product_id")
    stream = spark.createDataFrame(sales(0, 2000, products=500).to_pandas().astype({"product_id": "Int64"}))
    master = spark.createDataFrame(products(500).to_pandas())
    enriched = ss.enrich(stream, server.address("products", "product_id"), on="product_id", how=how, memory="8MB")
    assert multiset(enriched) == multiset(
        spark_join(stream, master, {"product_id": "product_id"}, how=how).select(*enriched.columns)
    )


@pytest.mark.parametrize("key", [["name"], ["product_id", "name"]])
def test_texts_and_several_columns_may_be_the_key(spark: SparkSession, server: Any, key: list[str]) -> None:
    server.load("products", products(500), TYPES, key=None)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE INDEX of_key ON products ({', '.join(key)})")
    sold = sales(0, 2000, products=500).to_pandas().astype({"product_id": "Int64"})
    named = [None if number % 13 == 0 else f"name {number} of version 1" for number in sold["product_id"].fillna(1)]
    stream = spark.createDataFrame(sold.assign(name=named)[["sale_id", *key]])
    master = spark.createDataFrame(products(500).to_pandas())
    for how in ("left", "semi"):
        enriched = ss.enrich(stream, server.address("products", "&key=".join(key)), on=key, how=how, memory="8MB")
        expected = spark_join(stream, master, {name: name for name in key}, how=how)
        assert multiset(enriched) == multiset(expected.select(*enriched.columns))
    with pytest.raises(ss.SemistreamError, match="would read pages"):
        ss.enrich(stream, server.address("products", "&key=".join(key)), on=key, order="any")


def test_a_stream_is_enriched_with_a_warning_forgets_old_rows_and_shows_no_password(
    spark: SparkSession, server: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.load("products", products(500), TYPES, "product_id")
    stream = SalesStream(spark, tmp_path / "stream")
    stream.arrive(sales(0, 500, products=500))
    address = server.address("products", "product_id", cache_for=2)
    with pytest.warns(UserWarning, match="has no versions") as told:
        enriched = ss.enrich(stream.stream(), address, on="product_id", how="left", memory="8MB")
    assert len([one for one in told if "has no versions" in str(one.message)]) == 1
    query = stream.start(enriched, processingTime="100 milliseconds")
    try:
        query.processAllAvailable()
        server.load("changed", products(500, version=2), TYPES, "product_id")
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("DELETE FROM products")
            cursor.execute("INSERT INTO products SELECT * FROM changed")
        time.sleep(2.1)
        stream.arrive(sales(500, 500, products=500))
        query.processAllAvailable()
    finally:
        query.stop()
    master = {version: spark.createDataFrame(products(500, version).to_pandas()) for version in (1, 2)}
    expected: Any = None
    for version, first in ((1, 0), (2, 500)):
        batch = stream.batch().where(f"sale_id >= {first} AND sale_id < {first + 500}")
        joined = spark_join(batch, master[version], {"product_id": "product_id"}, how="left")
        expected = joined if expected is None else expected.unionAll(joined)
    assert multiset(stream.written()) == multiset(expected)
    shown = [enriched._jdf.queryExecution().toString(), repr(query.recentProgress), *capfd.readouterr()]
    shown += [file.read_bytes().decode("latin-1") for file in stream.folder.rglob("*") if file.is_file()]
    for canary in CANARIES:
        assert not [text for text in shown if canary in text]


def test_a_failure_of_the_database_fails_the_query_and_writes_no_row(
    spark: SparkSession, server: Any, tmp_path: Path
) -> None:
    server.load("products", products(100), TYPES, "product_id")
    stream = SalesStream(spark, tmp_path / "stream")
    stream.arrive(sales(0, 100, products=100))
    address = server.address("products", "product_id", retry_for=0)
    with pytest.warns(UserWarning, match="has no versions"):
        enriched = ss.enrich(stream.stream(), address, on="product_id", how="left", memory="8MB", name="away")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("ALTER TABLE products DROP COLUMN name")
    query = stream.start(enriched)
    with pytest.raises(Exception, match="has lost its column 'name'") as failed:
        query.awaitTermination()
    assert not [canary for canary in CANARIES if canary in str(failed.value)]
    assert not list(stream.sink.glob("*.parquet"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_stream_goes_on_by_itself_when_its_database_was_killed_and_then_paused(
    spark: SparkSession, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(kind)  # for the password
    spark.sparkContext.environment |= {
        "PGPASSWORD": postgresql_servers.PASSWORD,
        "MYSQL_PWD": mariadb_servers.PASSWORD,
    }
    module: Any = postgresql_servers if kind == "postgresql" else mariadb_servers
    doomed = module.new_server()
    try:
        doomed.load("products", products(500), TYPES, "product_id")
        stream = SalesStream(spark, tmp_path / "stream")
        stream.arrive(sales(0, 200, products=500))
        address = doomed.address("products", "product_id", cache_for=1, statement_timeout=2)
        with pytest.warns(UserWarning, match="has no versions"):
            enriched = ss.enrich(stream.stream(), address, on="product_id", how="left", memory="8MB")
        query = stream.start(enriched, processingTime="100 milliseconds")
        query.processAllAvailable()
        doomed.process.kill()
        stream.arrive(sales(200, 200, products=500))
        time.sleep(2)
        assert query.isActive
        doomed.start()
        query.processAllAvailable()
        doomed.pause()
        stream.arrive(sales(400, 200, products=500))
        time.sleep(5)
        assert query.isActive
        doomed.go_on()
        query.processAllAvailable()
        query.stop()
        master = spark.createDataFrame(products(500).to_pandas())
        expected = spark_join(stream.batch(), master, {"product_id": "product_id"}, how="left")
        assert multiset(stream.written()) == multiset(expected)
    finally:
        for name in ("PGPASSWORD", "MYSQL_PWD"):
            del spark.sparkContext.environment[name]
        for running in spark.streams.active:
            running.stop()
        doomed.stop()


def test_key_types_that_differ_are_refused_when_the_query_is_planned(spark: SparkSession, postgresql: Any) -> None:
    postgresql.load("products", products(10), TYPES, "product_id")
    stream = spark.createDataFrame(pa.table({"product_id": ["1"]}).to_pandas())
    with pytest.raises(ss.SemistreamError, match="cast one of them"):
        ss.enrich(stream, postgresql.address("products", "product_id"), on="product_id")
