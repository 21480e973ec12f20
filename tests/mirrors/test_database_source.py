"""Mirrors of tables of PostgreSQL and MariaDB."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stored_rows import stored_rows

import semistream as ss
from semistream.core.errors import (
    InvalidSettingError,
    MasterUnavailableError,
    SchemaDriftError,
    UnknownColumnError,
    UnsupportedValueError,
)
from semistream.mirrors import database
from servers.mariadb import PASSWORD as MARIADB_PASSWORD
from servers.postgresql import PASSWORD as POSTGRESQL_PASSWORD
from servers.postgresql import PostgresqlServer


class Shop:
    """A table of products in a database, changed by plain SQL."""

    def __init__(self, kind: str, server: Any) -> None:
        self.kind = kind
        self.server = server
        self.quote = '"' if kind == "postgresql" else "`"
        self.table = f"products_{time.monotonic_ns()}"

    def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement in a transaction of its own."""
        connection = self.server.connect()
        try:
            return self.on(connection, text, *values)
        finally:
            connection.close()

    def on(self, connection: Any, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement on a connection."""
        with connection.cursor() as cursor:
            cursor.execute(text.replace("products", self.table), values)
            return list(cursor.fetchall()) if cursor.description else []

    def create(
        self, columns: str = "id BIGINT PRIMARY KEY, name VARCHAR(40), stamp BIGINT NOT NULL, gone BOOLEAN"
    ) -> None:
        """Make the table."""
        self.sql(f"CREATE TABLE products ({columns})")

    @property
    def address(self) -> str:
        """The address, without a key."""
        return self.server.address(self.table).replace("&key=id", "")

    def expected(self) -> dict[int, str]:
        """Return what the table has and no mark says is gone."""
        return dict(self.sql("SELECT id, name FROM products WHERE NOT COALESCE(gone, FALSE)"))


@pytest.fixture(params=["postgresql", "mariadb"])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """Return a table in each of the databases."""
    shop = Shop(request.param, request.getfixturevalue(request.param))
    yield shop
    shop.sql("DROP TABLE IF EXISTS products")


def _content(mirror: ss.MasterTable) -> dict[int, str]:
    rows = stored_rows(mirror)
    return dict(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True))


def test_after_every_refresh_a_mirror_equals_its_table(shop: Shop, tmp_path: Path) -> None:
    shop.create()
    shop.sql("INSERT INTO products VALUES " + ", ".join(f"({id_}, 'first', 1, FALSE)" for id_ in range(300)))
    source = ss.DatabaseSource(shop.address, grows="stamp", deleted="gone", overlap=3)
    mirror = ss.MasterTable.build(source, tmp_path / "m", key="id", page_bytes=512)
    assert _content(mirror) == shop.expected()
    chance = random.Random(1)
    for stamp in range(2, 12):
        for _ in range(chance.randrange(6)):
            id_, gone = chance.randrange(320), chance.random() < 0.3
            shop.sql("DELETE FROM products WHERE id = %s", id_)
            shop.sql("INSERT INTO products VALUES (%s, %s, %s, %s)", id_, f"at {stamp}", stamp, gone)
        mirror.refresh()
        assert _content(mirror) == shop.expected()
    assert not mirror.refresh().changed


def test_a_refresh_reads_and_writes_what_has_changed(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.create()
    shop.sql("INSERT INTO products VALUES " + ", ".join(f"({id_}, 'first', {id_}, FALSE)" for id_ in range(20_000)))
    source = ss.DatabaseSource(shop.address, grows="stamp", deleted="gone", overlap=10)
    mirror = ss.MasterTable.build(source, tmp_path / "m", key="id", page_bytes=512)
    index_bytes = mirror.info()["files"][0]["bytes"]
    shop.sql("UPDATE products SET name = 'second', stamp = 20000 WHERE id IN (5, 9000)")
    shop.sql("UPDATE products SET gone = TRUE, stamp = 20001 WHERE id = 12000")
    monkeypatch.setattr(database.DatabaseSource, "_everything", lambda *_: pytest.fail("all rows were read"))
    done = mirror.refresh()
    assert (done.rows_upserted, done.rows_deleted) == (2, 1)
    assert done.bytes_written - index_bytes < 6 * 1024
    assert done.position["watermark"] == {"number": 20_001}


def test_a_transaction_that_commits_later_with_an_earlier_value_is_not_lost(shop: Shop, tmp_path: Path) -> None:
    shop.create()
    shop.sql("INSERT INTO products VALUES (1, 'a', 1, FALSE)")
    source = ss.DatabaseSource(shop.address, grows="stamp", overlap=5)
    mirror = ss.MasterTable.build(source, tmp_path / "m", key="id")
    late = shop.server.connect()
    shop.on(late, "BEGIN")
    shop.on(late, "INSERT INTO products VALUES (2, 'late', 7, FALSE)")
    shop.sql("INSERT INTO products VALUES (3, 'early', 10, FALSE), (4, 'equal', 10, FALSE)")
    mirror.refresh()
    assert set(_content(mirror)) == {1, 3, 4}
    shop.on(late, "COMMIT")
    late.close()
    shop.sql("INSERT INTO products VALUES (5, 'equal, too', 10, FALSE)")
    assert mirror.refresh().rows_upserted == 2
    assert set(_content(mirror)) == {1, 2, 3, 4, 5}


def test_a_comparison_now_and_then_finds_rows_that_were_deleted_without_a_mark(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.create()
    shop.sql("INSERT INTO products VALUES (1, 'a', 1, FALSE), (2, 'b', 2, FALSE)")
    source = ss.DatabaseSource(shop.address, grows="stamp", compare_every="1 hour")
    mirror = ss.MasterTable.build(source, tmp_path / "m", key="id")
    shop.sql("DELETE FROM products WHERE id = 1")
    assert not mirror.refresh().changed
    now = time.time()
    monkeypatch.setattr(database.time, "time", lambda: now + 3700)
    assert mirror.refresh().rows_deleted == 1
    assert _content(mirror) == {2: "b"}


def test_times_are_watermarks_and_one_in_the_future_hides_nothing(shop: Shop, tmp_path: Path) -> None:
    kind = "TIMESTAMPTZ" if shop.kind == "postgresql" else "TIMESTAMP(6)"
    shop.create(f"id BIGINT PRIMARY KEY, name VARCHAR(40), stamp {kind} NOT NULL, gone BOOLEAN")
    now = "CURRENT_TIMESTAMP(6)"
    shop.sql(f"INSERT INTO products VALUES (1, 'a', {now}, FALSE), (2, 'b', '2037-01-01 00:00:00', FALSE)")
    source = ss.DatabaseSource(shop.address, grows="stamp", overlap="1 minute", compare_every="never")
    mirror = ss.MasterTable.build(source, tmp_path / "m", key="id")
    assert mirror.info()["mirror"]["position"]["watermark"]["time"] < "2037"
    shop.sql(f"INSERT INTO products VALUES (3, 'c', {now}, FALSE)")
    assert mirror.refresh().rows_upserted == 1
    assert not mirror.refresh().rows_upserted
    assert _content(mirror) == shop.expected()


def test_rows_without_a_value_in_the_column_that_grows_are_read_by_every_refresh(shop: Shop, tmp_path: Path) -> None:
    shop.create("id BIGINT PRIMARY KEY, name VARCHAR(40), stamp BIGINT, gone BOOLEAN")
    shop.sql("INSERT INTO products VALUES (1, 'a', 5, FALSE), (2, 'b', NULL, FALSE), (3, 'c', NULL, FALSE)")
    source = ss.DatabaseSource(shop.address, grows="stamp", deleted="gone", overlap=0, compare_every="never")
    mirror = ss.MasterTable.build(source, tmp_path / "m", "id")
    shop.sql("UPDATE products SET name = 'changed' WHERE id = 2")
    shop.sql("UPDATE products SET gone = TRUE WHERE id = 3")
    shop.sql("INSERT INTO products VALUES (4, 'd', NULL, NULL)")
    done = mirror.refresh()
    assert (done.rows_upserted, done.rows_deleted) == (2, 1)
    assert _content(mirror) == shop.expected()
    assert not mirror.refresh().changed


def test_without_a_column_that_grows_all_rows_are_compared(shop: Shop, tmp_path: Path) -> None:
    shop.create("name VARCHAR(40), id BIGINT, gone BOOLEAN, PRIMARY KEY (id)")
    shop.sql("INSERT INTO products (id, name) VALUES (1, 'a'), (2, 'b')")
    mirror = ss.MasterTable.build(ss.DatabaseSource(shop.address), tmp_path / "m", key="id")
    shop.sql("DELETE FROM products WHERE id = 1")
    shop.sql("UPDATE products SET name = 'c'")
    done = mirror.refresh()
    assert (done.rows_upserted, done.rows_deleted) == (1, 1)


def test_a_value_that_python_does_not_have_is_one_sentence(postgresql: PostgresqlServer, tmp_path: Path) -> None:
    shop = Shop("postgresql", postgresql)
    shop.create("id BIGINT PRIMARY KEY, name VARCHAR(40), stamp TIMESTAMPTZ")
    shop.sql("INSERT INTO products VALUES (1, 'a', 'infinity')")
    for grows in ("stamp", None):
        with pytest.raises(UnsupportedValueError, match="name the view"):
            ss.MasterTable.build(ss.DatabaseSource(shop.address, grows=grows), tmp_path / "m", "id")
    shop.sql("DROP TABLE products")


def test_values_of_every_type_arrive_as_they_are(shop: Shop, tmp_path: Path) -> None:
    text = "TEXT" if shop.kind == "postgresql" else "TEXT CHARACTER SET utf8mb4"
    blob, double = ("BYTEA", "DOUBLE PRECISION") if shop.kind == "postgresql" else ("BLOB", "DOUBLE")
    shop.create(f"id INT PRIMARY KEY, t {text}, b {blob}, d {double}, n DECIMAL(12, 3), y DATE, s TIMESTAMP NULL")
    shop.sql(
        "INSERT INTO products VALUES (%s, %s, %s, %s, %s, %s, %s), (2, NULL, NULL, NULL, NULL, NULL, NULL)",
        *(1, "漢字 'a\"", b"\x00\xff", 0.1, "-123.456", "1999-12-31", "2020-02-29 12:34:56"),
    )
    mirror = ss.MasterTable.build(ss.DatabaseSource(shop.address), tmp_path / "m", key="id")
    first, second = stored_rows(mirror).to_pylist()
    assert (first["t"], first["b"], first["d"], str(first["n"])) == ("漢字 'a\"", b"\x00\xff", 0.1, "-123.456")
    assert (str(first["y"]), str(first["s"])[:19]) == ("1999-12-31", "2020-02-29 12:34:56")
    assert all(value is None for name, value in second.items() if name != "id")


def test_columns_that_come_and_go(shop: Shop, tmp_path: Path) -> None:
    shop.create()
    shop.sql("INSERT INTO products VALUES (1, 'a', 1, FALSE)")
    mirror = ss.MasterTable.build(ss.DatabaseSource(shop.address, grows="stamp"), tmp_path / "m", key="id")
    shop.sql("ALTER TABLE products ADD COLUMN extra INT DEFAULT 7")
    done = mirror.refresh()
    assert (done.columns_added, done.rebuilt) == (("extra",), True)
    assert stored_rows(mirror)["extra"].to_pylist() == [7]
    version = mirror.version
    shop.sql("ALTER TABLE products DROP COLUMN name")
    with pytest.raises(SchemaDriftError, match="has lost the column 'name'"):
        mirror.refresh()
    assert mirror.version == version


def test_identifiers_are_names_and_nothing_else(shop: Shop, tmp_path: Path) -> None:
    shop.create()
    shop.sql("INSERT INTO products VALUES (1, 'a', 1, FALSE)")
    for hostile in ('x"; DROP TABLE products; --', "x`; DROP TABLE products; --", "stamp) OR (1=1", "%s", "a'b", "{}"):
        with pytest.raises(UnknownColumnError, match="has no column"):
            ss.MasterTable.build(ss.DatabaseSource(shop.address, grows=hostile), tmp_path / "m", key="id")
        name = f"{shop.quote}{hostile.replace(shop.quote, 2 * shop.quote)}{shop.quote}".replace("%", "%%")
        connection = shop.server.connect()
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {shop.table} ADD COLUMN {name} BIGINT DEFAULT 5", ())
        source = ss.DatabaseSource(shop.address, grows=hostile, columns=["id", hostile])
        mirror = ss.MasterTable.build(source, tmp_path / f"m{abs(hash(hostile))}", key="id")
        mirror.refresh()
        assert stored_rows(mirror)[hostile].to_pylist() == [5]
        connection.close()


def test_no_password_is_in_a_manifest_or_accepted_in_an_address(shop: Shop, tmp_path: Path) -> None:
    shop.create()
    shop.sql("INSERT INTO products VALUES (1, 'a', 1, FALSE)")
    mirror = ss.MasterTable.build(ss.DatabaseSource(shop.address), tmp_path / "m", key="id")
    for file in (tmp_path / "m").rglob("*"):
        if file.is_file():
            assert not any(p.encode() in file.read_bytes() for p in (MARIADB_PASSWORD, POSTGRESQL_PASSWORD))
    with pytest.raises(InvalidSettingError, match="must not hold a password") as refused:
        ss.DatabaseSource(shop.address.replace("@", ":hidden@"))
    assert "hidden" not in str(refused.value)
    assert "address" in mirror.info()["mirror"]["source"]


def test_a_server_that_is_away_leaves_the_mirror_as_it_is(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.create()
    shop.sql("INSERT INTO products VALUES (1, 'a', 1, FALSE)")
    address = f"{shop.address}&retry_for=0"
    mirror = ss.MasterTable.build(ss.DatabaseSource(address, grows="stamp"), tmp_path / "m", key="id")
    shop.sql("INSERT INTO products VALUES (2, 'b', 2, FALSE)")
    password = "PGPASSWORD" if shop.kind == "postgresql" else "MYSQL_PWD"
    monkeypatch.setenv(password, "wrong")
    with pytest.raises(MasterUnavailableError, match="refuses"):
        mirror.refresh()
    monkeypatch.undo()
    assert mirror.version == 1
    assert mirror.refresh().rows_upserted == 1


def test_an_address_of_the_command_line_may_hold_the_settings(shop: Shop) -> None:
    from semistream.mirrors.sources import source_at

    address = f"{shop.address}&grows=stamp&overlap=7&compare_every=2+hours"
    assert source_at(address) == ss.DatabaseSource(shop.address, grows="stamp", overlap=7, compare_every="2 hours")
