"""The first load of a mirror of a database: Spark reads it by ranges of keys, and it has the rows of one moment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from stored_rows import stored_rows

import semistream as ss
from semistream.core.errors import MasterUnavailableError, NullKeyError, UnsupportedValueError
from semistream.mirrors import database_ranges
from semistream.spark import master_build
from servers import mariadb as mariadb_servers
from servers import postgresql as postgresql_servers
from servers.s3 import S3Server

ROWS = 3000
TYPES = {"id": "bigint", "code": "varchar(20)", "name": "varchar(40)", "stamp": "bigint", "gone": "boolean"}


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return each kind of server; a few hundred rows are worth a task."""
    monkeypatch.setattr(database_ranges, "MIN_ROWS", 500)
    passwords = {"PGPASSWORD": postgresql_servers.PASSWORD, "MYSQL_PWD": mariadb_servers.PASSWORD}
    spark.sparkContext.environment |= passwords
    yield request.getfixturevalue(request.param)
    for name in passwords:
        del spark.sparkContext.environment[name]


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many partitions each build by Spark had that needed no shuffle, and 0 for others."""
    built: list[int] = []

    def build(frame: Any, *arguments: Any, in_ranges: bool = False, **named: Any) -> int:
        built.append(frame.rdd.getNumPartitions() if in_ranges else 0)
        return original(frame, *arguments, in_ranges=in_ranges, **named)

    original = master_build.build
    monkeypatch.setattr(master_build, "build", build)
    return built


def loaded(server: Any, name: str, rows: int = ROWS) -> str:
    """Make a table, whose keys are far apart in places, and return its address."""
    ids = [number if number % 3 else number * 1_000_003 for number in range(rows)]
    table = pa.table(
        {
            "id": ids,
            "code": [f"c{number:05d}" for number in range(rows)],
            "name": [None if number % 7 == 0 else f"näme {number}" for number in range(rows)],
            "stamp": list(range(rows)),
            "gone": [number % 10 == 0 for number in range(rows)],
        }
    )
    server.load(name, table, TYPES, "id")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE INDEX by_code_{name} ON {name} (code)")
        cursor.execute(f"CREATE INDEX by_both_{name} ON {name} (id, code)")
    return str(server.address(name)).replace("&key=id", "")


def names_by(mirror: ss.MasterTable, key: str) -> dict[Any, Any]:
    rows = stored_rows(mirror)
    return dict(zip(rows[key].to_pylist(), rows["name"].to_pylist(), strict=True))


def names_in(server: Any, table: str, key: str) -> dict[Any, Any]:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {key}, name FROM {table} WHERE NOT gone")
        return dict(cursor.fetchall())


def test_a_first_load_by_ranges_has_all_rows_and_goes_on_by_refreshes(
    server: Any, tmp_path: Path, frames: list[int]
) -> None:
    source = ss.DatabaseSource(loaded(server, "by_id"), grows="stamp", deleted="gone", overlap=3)
    mirror = ss.MasterTable.build(source, tmp_path / "m", key="id", page_bytes=512)
    assert frames == [6]
    assert len(mirror.info()["files"]) == 7
    assert names_by(mirror, "id") == names_in(server, "by_id", "id")
    assert mirror.info()["mirror"]["position"]["watermark"] == {"number": ROWS - 1}
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE by_id SET name = 'changed', stamp = 3000 WHERE id IN (1, 2)")
        cursor.execute("UPDATE by_id SET gone = TRUE, stamp = 3001 WHERE id = 4")
    done = mirror.refresh()
    assert (done.rows_upserted, done.rows_deleted) == (2, 1)
    assert frames == [6]
    assert names_by(mirror, "id") == names_in(server, "by_id", "id")


@pytest.mark.parametrize("key", [("code",), ("id", "code")])
def test_keys_that_are_hashed_are_read_by_ranges_too(
    server: Any, tmp_path: Path, frames: list[int], key: tuple[str, ...]
) -> None:
    source = ss.DatabaseSource(loaded(server, "by_code"), deleted="gone")
    mirror = ss.MasterTable.build(source, tmp_path / "m", key=list(key), page_bytes=512)
    assert frames == [0]
    assert names_by(mirror, key[-1]) == names_in(server, "by_code", key[-1])
    done = mirror.refresh()
    assert (done.rows_upserted, done.rows_deleted) == (0, 0)


def test_a_first_load_goes_straight_to_s3(spark: SparkSession, server: Any, s3: S3Server, frames: list[int]) -> None:
    before = dict(spark.sparkContext.environment)
    spark.sparkContext.environment |= s3.settings
    try:
        source = ss.DatabaseSource(loaded(server, "to_s3"), grows="stamp", deleted="gone")
        mirror = ss.MasterTable.build(source, s3.address("mirror"), key="id", page_bytes=512)
    finally:
        spark.sparkContext.environment.clear()
        spark.sparkContext.environment |= before
    assert frames == [6]
    assert names_by(mirror, "id") == names_in(server, "to_s3", "id")


def test_a_small_table_is_read_without_spark(server: Any, tmp_path: Path, frames: list[int]) -> None:
    mirror = ss.MasterTable.build(ss.DatabaseSource(loaded(server, "small", 900)), tmp_path / "m", key="id")
    assert mirror.info()["rows"] == 900
    assert frames == []


def test_a_row_without_a_key_is_an_error_as_it_is_without_spark(server: Any, tmp_path: Path) -> None:
    address = loaded(server, "with_null")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE with_null SET id = NULL WHERE id = 7")
    with pytest.raises(NullKeyError):
        ss.MasterTable.build(ss.DatabaseSource(address), tmp_path / "m", key="id")


@pytest.mark.parametrize("server", ["postgresql"], indirect=True)  # MariaDB shows no snapshot to other connections
def test_tasks_see_the_rows_of_one_moment_in_postgresql(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = loaded(server, "moment")
    before = names_in(server, "moment", "id")

    def build(*arguments: Any, **named: Any) -> int:
        with server.connect() as connection:
            connection.execute("UPDATE moment SET name = 'later', stamp = stamp + 10000")
            connection.execute("DELETE FROM moment WHERE id > 5000")
        return original(*arguments, **named)

    original = master_build.build
    monkeypatch.setattr(master_build, "build", build)
    source = ss.DatabaseSource(address, grows="stamp", deleted="gone")
    mirror = ss.MasterTable.build(source, tmp_path / "m", key="id", page_bytes=512)
    assert names_by(mirror, "id") == before
    assert mirror.info()["mirror"]["position"]["watermark"] == {"number": ROWS - 1}


def test_what_changes_during_a_first_load_from_mariadb_is_there_after_a_refresh(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = loaded(server, "changing")

    def build(*arguments: Any, **named: Any) -> int:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("UPDATE changing SET name = 'later', stamp = stamp + 10000 WHERE stamp < 400")
            cursor.execute("UPDATE changing SET gone = TRUE, stamp = stamp + 10000 WHERE stamp BETWEEN 500 AND 600")
        return original(*arguments, **named)

    original = master_build.build
    with monkeypatch.context() as patched:
        patched.setattr(master_build, "build", build)
        source = ss.DatabaseSource(address, grows="stamp", deleted="gone", overlap=10)
        mirror = ss.MasterTable.build(source, tmp_path / "m", key="id", page_bytes=512)
    mirror.refresh()
    assert names_by(mirror, "id") == names_in(server, "changing", "id")


@pytest.mark.parametrize("server", ["postgresql"], indirect=True)
def test_a_value_that_no_task_can_read_is_one_sentence(server: Any, tmp_path: Path) -> None:
    address = loaded(server, "unreadable")
    with server.connect() as connection:
        connection.execute("ALTER TABLE unreadable ADD price numeric")
        connection.execute("UPDATE unreadable SET price = 'NaN' WHERE id = 77")
    with pytest.raises(UnsupportedValueError, match="'price'") as told:
        ss.MasterTable.build(ss.DatabaseSource(address), tmp_path / "m", key="id")
    assert "Traceback" not in str(told.value)
    assert "\n" not in str(told.value)


def test_a_server_that_goes_away_during_a_first_load_is_one_sentence(
    spark: SparkSession, server: Any, tmp_path: Path
) -> None:
    address = loaded(server, "away")
    passwords = dict(spark.sparkContext.environment)
    spark.sparkContext.environment |= {"PGPASSWORD": "wrong", "MYSQL_PWD": "wrong"}
    try:
        with pytest.raises(MasterUnavailableError, match="refuses") as told:
            ss.MasterTable.build(ss.DatabaseSource(address), tmp_path / "m", key="id")
    finally:
        spark.sparkContext.environment |= passwords
    assert "Traceback" not in str(told.value)
