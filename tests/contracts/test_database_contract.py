"""Tables of real databases keep the contracts of stores and of stored tables."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from store_contract import StoreContract, codes_of, products
from table_contract import TableContract

from semistream.store.contract import MasterStore, StoredTable
from semistream.store.database.table import DatabaseTable
from semistream.store.found_rows import AskedKeys, FixedValues
from servers.mariadb import MariadbServer
from servers.postgresql import PostgresqlServer

_numbers = itertools.count()
_TYPES = {
    "postgresql": {pa.null(): "text", pa.string(): "text", pa.int64(): "bigint", pa.float64(): "double precision"},
    "mysql": {pa.null(): "varchar(200)", pa.string(): "varchar(200)", pa.int64(): "bigint", pa.float64(): "double"},
}


def _loaded(server: PostgresqlServer | MariadbServer, rows: pa.Table, key: str) -> str:
    kind = "postgresql" if isinstance(server, PostgresqlServer) else "mysql"
    name = f"contract_{next(_numbers)}"
    server.load(name, rows, {field.name: _TYPES[kind][field.type] for field in rows.schema}, key)
    return server.address(name, key, page_bytes=2048, cache_for=3600)


class DatabaseStoreContract(StoreContract):
    """What differs from other stores: rows of keys that have no order in the database are found only by their keys."""

    server: PostgresqlServer | MariadbServer

    def make(self, rows: pa.Table, key: str | list[str], on_duplicate: str = "error") -> MasterStore:
        del on_duplicate
        names = [key] if isinstance(key, str) else key
        address = _loaded(self.server, rows, names[0])
        if len(names) > 1:
            table = address.split("table=")[1].split("&")[0]
            with self.server.connect() as connection, connection.cursor() as cursor:
                cursor.execute(f"CREATE INDEX all_of_{table} ON {table} ({', '.join(names)})")
        for name in names[1:]:
            address += f"&key={name}"
        return DatabaseTable(address).open()

    def test_keys_that_are_not_integers_are_found_by_their_code(self) -> None:
        rows = products(2000)
        keyed = rows.append_column("price_text", rows.column("price").cast(pa.string()).fill_null("none"))
        for key in (["name"], ["price_text", "id"]):
            with self.make(keyed, key) as store:
                assert not store.capabilities.pages
                codes = codes_of(store, keyed)
                order = pa.array(np.argsort(codes)[::3])
                asked = keyed.take(order).combine_chunks()
                keys = AskedKeys(
                    tuple(asked.column(name).combine_chunks() for name in store.key), np.arange(len(order) + 1)
                )
                reader = store.row_reader(["name", "id", "price"], 10_000_000)
                assert reader is not None
                found = reader.look_up_keys(codes[order], keys)
                assert (found.code_count, found.bounds.tolist()) == (len(order), list(range(len(order) + 1)))
                ids = found.columns[1]
                assert isinstance(ids, FixedValues)
                assert ids.values.view(np.int64).tolist() == asked.column("id").to_pylist()


class TestPostgresqlStore(DatabaseStoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, postgresql: PostgresqlServer) -> None:
        self.server = postgresql


class TestMariadbStore(DatabaseStoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, mariadb: MariadbServer) -> None:
        self.server = mariadb


class DatabaseTableContract(TableContract):
    """Versions are periods of time, so the clock moves on with each change."""

    server: PostgresqlServer | MariadbServer

    def make(self, rows: pa.Table, key: str) -> StoredTable:
        self.now = 1_000_000.0
        self.address = _loaded(self.server, rows, key)
        return DatabaseTable(self.address, clock=lambda: self.now)

    def change(self, table: StoredTable, rows: pa.Table) -> None:
        assert isinstance(table, DatabaseTable)
        name = self.address.split("table=")[1].split("&")[0]
        with self.server.connect() as connection, connection.cursor() as cursor:
            for row in rows.to_pylist():
                cursor.execute(
                    f"UPDATE {name} SET name = %s, price = %s WHERE id = %s", [row["name"], row["price"], row["id"]]
                )
        self.now += 3600


class TestPostgresqlTable(DatabaseTableContract):
    @pytest.fixture(autouse=True)
    def _server(self, postgresql: PostgresqlServer) -> None:
        self.server = postgresql


class TestMariadbTable(DatabaseTableContract):
    @pytest.fixture(autouse=True)
    def _server(self, mariadb: MariadbServer) -> None:
        self.server = mariadb
