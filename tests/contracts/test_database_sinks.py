"""Tables of databases keep the contract of sinks."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sink_contract import SCHEMA, BatchSinkContract, arrive, batch_of, build_products, pipeline_file

from semistream.core.errors import (
    InvalidSettingError,
    NameClashError,
    SchemaDriftError,
    SinkUnavailableError,
    UnsupportedValueError,
)
from semistream.pipeline.planning import plan_pipeline
from semistream.pipeline.running import run_pipeline
from semistream.pipeline.sinks import sink_of
from semistream.pipeline.sinks.database import DatabaseTable
from semistream.pipeline.sinks.database.staging_task import warehouse_at
from servers.mariadb import PASSWORD as MARIADB_PASSWORD
from servers.mariadb import MariadbServer
from servers.postgresql import PASSWORD as POSTGRESQL_PASSWORD
from servers.postgresql import PostgresqlServer


class DatabaseContract(BatchSinkContract):
    """What is special to databases."""

    kind: str
    server: PostgresqlServer | MariadbServer

    @pytest.fixture(autouse=True)
    def _passwords(self, spark: SparkSession) -> Iterator[None]:
        """Let workers have the passwords in their environment, as a cluster gives them."""
        passwords = {"PGPASSWORD": POSTGRESQL_PASSWORD, "MYSQL_PWD": MARIADB_PASSWORD}
        spark.sparkContext.environment |= passwords
        yield
        for name in passwords:
            del spark.sparkContext.environment[name]

    def described(self, folder: Path, table: str, *, upsert: bool = False, order: bool = True) -> str:
        patience = {"statement_timeout": 1, "connect_timeout": 1} if table == "paused" else {}
        address = self.server.address(self._name(folder, table), **patience).replace("&key=id", "")
        mode = 'mode = "upsert"\nkey = "sale_id"\n' if upsert else ""
        return f'format = "{self.kind}"\ntable = "{address}"\n{mode}' + (
            'order_by = "version"\n' if upsert and order else ""
        )

    def held(self, spark: SparkSession, folder: Path, table: str) -> list[dict[str, Any]]:  # noqa: ARG002
        with self._connected() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {self._name(folder, table)}")
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def remove(self, folder: Path, table: str) -> None:
        with self._connected() as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {self._name(folder, table)}")

    def _connected(self) -> Any:
        """Return a connection, which a server that was paused may have none left of for a moment."""
        for _ in range(50):
            with suppress(Exception):
                return self.server.connect()
            time.sleep(0.2)
        return self.server.connect()

    def _name(self, folder: Path, table: str) -> str:
        return f"{table}_" + re.sub(r"\W", "_", folder.name)[-40:].lower()

    def _staging(self) -> list[str]:
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'semistream%'")
            return [name for (name,) in cursor.fetchall() if name != "semistream_ledger"]

    def test_staging_tables_of_killed_attempts_are_removed(self, spark: SparkSession, tmp_path: Path) -> None:
        sink = self.sink(tmp_path, "leftovers")
        assert isinstance(sink, DatabaseTable)
        batch = batch_of(tmp_path, 0)
        warehouse = warehouse_at(sink._address)
        left = f"{sink._prefix(batch)}17_abcd"
        warehouse.sessions.run(lambda c: (warehouse.begin(c), warehouse.make_staging(c, left, [])))
        assert left in self._staging()
        sink.write(spark.createDataFrame([(1, 1, 1)], SCHEMA), batch)
        assert self._staging() == []

    def test_columns_of_the_table_may_have_other_capitals(self, spark: SparkSession, tmp_path: Path) -> None:
        sink = self.sink(tmp_path, "capitals", upsert=True)
        assert isinstance(sink, DatabaseTable)
        quoted = warehouse_at(sink._address).quoted
        with self.server.connect() as connection, connection.cursor() as cursor:
            columns = f"{quoted('Sale_ID')} BIGINT PRIMARY KEY, product_id BIGINT, {quoted('VERSION')} INT"
            cursor.execute(f"CREATE TABLE {self._name(tmp_path, 'capitals')} ({columns})")
        for number, version in enumerate((3, 2, 4)):
            rows = spark.createDataFrame([(1, number, version)], SCHEMA)
            sink.check(rows)
            sink.write(rows, batch_of(tmp_path, number))
        assert self.held(spark, tmp_path, "capitals") == [{"Sale_ID": 1, "product_id": 2, "VERSION": 4}]

    def test_nested_values_are_refused_in_one_sentence(self, spark: SparkSession, tmp_path: Path) -> None:
        rows = spark.sql("SELECT 1L AS sale_id, array(1) AS many")
        with pytest.raises(UnsupportedValueError, match=r"'many' is of type array<int>.*to_json\(many\)"):
            self.sink(tmp_path, "nested").check(rows)

    def test_names_that_cannot_be_made_are_told_before_any_write(self, spark: SparkSession, tmp_path: Path) -> None:
        sink = self.sink(tmp_path, "names")
        with pytest.raises(NameClashError, match="Semistream_chunk"):
            sink.check(spark.sql("SELECT 1L AS sale_id, 2 AS Semistream_chunk"))
        with pytest.raises(InvalidSettingError, match=r"column 'xxx.*cannot be made"):
            sink.check(spark.sql(f"SELECT 1L AS {'x' * 65}"))
        with pytest.raises(InvalidSettingError, match=r"table 'lll.*cannot be made"):
            self.sink(tmp_path, "l" * 65).check(spark.sql("SELECT 1L AS sale_id"))

    def test_a_column_that_is_dropped_while_the_pipeline_runs_stops_it(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        rows = spark.createDataFrame([(1, 1, 1)], SCHEMA)
        sink = self.sink(tmp_path, "lost")
        sink.write(rows, batch_of(tmp_path, 0))
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {self._name(tmp_path, 'lost')} DROP COLUMN version")
        with pytest.raises(SchemaDriftError, match="has no column 'version'"):
            sink.write(rows, batch_of(tmp_path, 1))
        assert self._staging() == []

    def test_moments_are_the_same_in_any_zone_of_the_session(self, spark: SparkSession, tmp_path: Path) -> None:
        # The first does not exist in New York as a time on the wall, the others are one there.
        texts = ("2026-03-08T02:30:00", "2026-11-01T05:30:00", "2026-11-01T06:30:00")
        zone = spark.conf.get("spark.sql.session.timeZone")
        assert zone is not None
        sink = self.sink(tmp_path, "zones")
        try:
            for number, name in enumerate(("UTC", "America/New_York", "Asia/Kolkata")):
                spark.conf.set("spark.sql.session.timeZone", name)
                at = ", ".join(f"struct(timestamp'{text}Z' AS at, timestamp_ntz'{text}' AS wall)" for text in texts)
                sink.write(spark.sql(f"SELECT inline(array({at}))"), batch_of(tmp_path, number))
        finally:
            spark.conf.set("spark.sql.session.timeZone", zone)
        assert isinstance(sink, DatabaseTable)
        warehouse = warehouse_at(sink._address)  # whose sessions are in UTC
        found = warehouse.sessions.run(lambda c: warehouse.execute(c, f"SELECT at, wall FROM {warehouse.table}"))
        moments = sorted([datetime.fromisoformat(text) for text in texts] * 3)
        for column in zip(*found, strict=True):
            assert sorted(value.replace(tzinfo=None) for value in column) == moments

    def test_an_index_that_is_dropped_while_the_pipeline_runs_stops_it(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        rows = spark.createDataFrame([(1, 1, 1)], SCHEMA)
        sink = self.sink(tmp_path, "dropped", upsert=True)
        sink.write(rows, batch_of(tmp_path, 0))
        key = "CONSTRAINT {}_pkey" if self.kind == "postgresql" else "PRIMARY KEY"
        name = self._name(tmp_path, "dropped")
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {name} DROP {key.format(name)}")
        with pytest.raises(InvalidSettingError, match="no unique index on sale_id alone"):
            sink.write(rows, batch_of(tmp_path, 1))
        assert self.counted(spark, tmp_path, "dropped").total() == 1

    def test_an_upsert_needs_an_index_of_its_key(self, spark: SparkSession, tmp_path: Path) -> None:
        rows = spark.createDataFrame([(1, 1, 1)], SCHEMA)
        self.sink(tmp_path, "index").write(rows, batch_of(tmp_path, 0))
        with pytest.raises(InvalidSettingError, match="no unique index on sale_id alone"):
            self.sink(tmp_path, "index", upsert=True).check(rows)

    def test_a_value_that_the_server_refuses_stops_the_pipeline_with_one_sentence(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        build_products(tmp_path)
        arrive(tmp_path, "0.json", [(1, 1, 1)])
        with self.server.connect() as connection, connection.cursor() as cursor:
            name = self._name(tmp_path, "refusing")
            cursor.execute(f"CREATE TABLE {name} (sale_id BIGINT, product_id BIGINT, version INT, price BIGINT)")
            cursor.execute(f"ALTER TABLE {name} ADD CONSTRAINT small_{name[:20]} CHECK (version < 10)")
        description = pipeline_file(tmp_path, self.described(tmp_path, "refusing"))
        run_pipeline(description, spark=spark)
        arrive(tmp_path, "1.json", [(2, 1, 77)])
        with pytest.raises(SinkUnavailableError, match=r"refuses a value.*compare the rows") as refused:
            run_pipeline(description, spark=spark)
        assert "77" not in str(refused.value).replace(str(self.server.port), "")
        assert self.counted(spark, tmp_path, "refusing") == {(1, 1): 1}, "the batch before is there"
        assert self._staging() == []

    def test_rows_survive_a_server_that_is_paused(self, spark: SparkSession, tmp_path: Path) -> None:
        sink = self.sink(tmp_path, "paused")
        rows = spark.createDataFrame([(number, 1, 1) for number in range(100)], SCHEMA)
        sink.write(rows.limit(1), batch_of(tmp_path, 0))
        self.server.pause()
        resume = threading.Timer(3.0, self.server.go_on)
        resume.start()
        try:
            sink.write(rows, batch_of(tmp_path, 1))
        finally:
            resume.join()
        assert len(self.held(spark, tmp_path, "paused")) == 101

    def test_the_password_is_nowhere(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        build_products(tmp_path)
        arrive(tmp_path, "0.json", [(1, 1, 1)])
        description = pipeline_file(tmp_path, self.described(tmp_path, "secret"))
        run_pipeline(description, spark=spark)
        for name in ("PGPASSWORD", "MYSQL_PWD"):
            monkeypatch.setenv(name, "canary-that-is-wrong")
        sink = sink_of(description)
        assert isinstance(sink, DatabaseTable)
        sink._warehouse.sessions.close()
        with pytest.raises(SinkUnavailableError) as refused:
            sink.check(spark.createDataFrame([(1, 1, 1)], SCHEMA))
        told = "".join(traceback.format_exception(refused.value))
        said = f"{refused.value!r} {told} {description!r} {sink!r} {sink.told} {capfd.readouterr()}"
        files = [file.read_bytes() for file in (tmp_path / "state").rglob("*") if file.is_file()]
        for canary in (POSTGRESQL_PASSWORD, MARIADB_PASSWORD, "canary-that-is-wrong"):
            assert canary not in said
            assert all(canary.encode() not in text for text in files)


class TestPostgresql(DatabaseContract):
    """PostgreSQL."""

    kind = "postgresql"

    @pytest.fixture(autouse=True)
    def _server(self, postgresql: PostgresqlServer) -> None:
        self.server = postgresql

    def test_a_server_that_crashes_while_rows_are_staged_loses_none(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A crash empties unlogged tables: the batch is staged again."""
        sink = self.sink(tmp_path, "crash")
        sink.write(spark.createDataFrame([(0, 1, 1)], SCHEMA), batch_of(tmp_path, 0))
        rows = spark.createDataFrame([(number, 1, 1) for number in range(1, 51)], SCHEMA)
        assert isinstance(sink, DatabaseTable)
        warehouse = warehouse_at(sink._address)
        commit, crashed = warehouse.commit, []

        def crash_first(connection: Any, **named: Any) -> None:
            if not crashed:
                crashed.append(True)
                with self.server.connect() as other:
                    os.kill(other.info.backend_pid, signal.SIGKILL)  # the server then ends all its processes
            commit(connection, **named)

        monkeypatch.setattr(warehouse, "commit", crash_first)
        sink.write(rows, batch_of(tmp_path, 1))
        assert crashed
        assert sorted(row["sale_id"] for row in self.held(spark, tmp_path, "crash")) == list(range(51))

    @pytest.mark.filterwarnings("ignore:.*has no versions")
    def test_a_key_from_a_master_table_without_versions_is_refused(self, spark: SparkSession, tmp_path: Path) -> None:
        products = pa.table({"product_id": [1], "price": [10]})
        self.server.load("unversioned", products, {"product_id": "bigint", "price": "bigint"}, key="product_id")
        master = self.server.address("unversioned", key="product_id")
        arrive(tmp_path, "0.json", [(1, 1, 1)])
        sink = self.described(tmp_path, "unsure", upsert=True)
        plan_pipeline(spark, pipeline_file(tmp_path, sink, master=master))
        by_price = sink.replace('key = "sale_id"', 'key = "price"')
        with pytest.raises(InvalidSettingError, match=r"'price', which comes from a master table without versions"):
            plan_pipeline(spark, pipeline_file(tmp_path, by_price, master=master))
        build_products(tmp_path)
        plan_pipeline(spark, pipeline_file(tmp_path, by_price, state="other"))


class TestMariadb(DatabaseContract):
    """MariaDB."""

    kind = "mysql"

    @pytest.fixture(autouse=True)
    def _server(self, mariadb: MariadbServer) -> None:
        self.server = mariadb

    def test_another_unique_index_is_refused(self, spark: SparkSession, tmp_path: Path) -> None:
        rows = spark.createDataFrame([(1, 1, 1)], SCHEMA)
        self.sink(tmp_path, "second", upsert=True).write(rows, batch_of(tmp_path, 0))
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE UNIQUE INDEX more ON {self._name(tmp_path, 'second')} (product_id)")
        with pytest.raises(InvalidSettingError, match="another unique index, on product_id"):
            self.sink(tmp_path, "second", upsert=True).check(rows)

    def test_a_key_that_is_compared_without_capitals_is_refused(self, spark: SparkSession, tmp_path: Path) -> None:
        text = spark.sql("SELECT 'a' AS sale_id, 1 AS version")
        sink = self.sink(tmp_path, "collated", upsert=True)
        with pytest.raises(InvalidSettingError, match=r"has no length.*VARCHAR\(100\)"):
            sink.check(text)
        with self.server.connect() as connection, connection.cursor() as cursor:
            name = self._name(tmp_path, "collated")
            cursor.execute(f"CREATE TABLE {name} (sale_id VARCHAR(100) PRIMARY KEY, version INT)")
            with pytest.raises(InvalidSettingError, match="compared by utf8mb4"):
                sink.check(text)
            cursor.execute(f"ALTER TABLE {name} MODIFY sale_id VARCHAR(100) COLLATE utf8mb4_bin")
            with pytest.raises(InvalidSettingError, match=r"space at their end.*utf8mb4_nopad_bin"):
                sink.check(text)
            cursor.execute(f"ALTER TABLE {name} MODIFY sale_id VARCHAR(100) COLLATE utf8mb4_nopad_bin")
        sink.check(text)
        sink.write(spark.sql("SELECT explode(array('a', 'a ', 'A')) AS sale_id, 1 AS version"), batch_of(tmp_path, 0))
        assert sorted(row["sale_id"] for row in self.held(spark, tmp_path, "collated")) == ["A", "a", "a "]

    def test_an_engine_without_transactions_is_refused(self, spark: SparkSession, tmp_path: Path) -> None:
        rows = spark.createDataFrame([(1, 1, 1)], SCHEMA)
        with self.server.connect() as connection, connection.cursor() as cursor:
            columns = "sale_id BIGINT, product_id BIGINT, version INT"
            cursor.execute(f"CREATE TABLE {self._name(tmp_path, 'engine')} ({columns}) ENGINE = MyISAM")
        with pytest.raises(InvalidSettingError, match="engine without transactions"):
            self.sink(tmp_path, "engine").check(rows)
