"""What tests of tables in databases share: statements, stores, and all rows of a store."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import semistream as ss
from semistream.store.contract import MasterStore
from semistream.store.database.mysql import quoted
from servers.mariadb import MariadbServer
from servers.postgresql import PostgresqlServer

Server = PostgresqlServer | MariadbServer


def execute(server: Server, *statements: str) -> None:
    """Run statements as the owner of everything."""
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def opened(server: Server, table: str, key: str = "id", **options: object) -> MasterStore:
    return ss.MasterTable(server.address(table, key, **options)).open()


def rows_by_pages(store: MasterStore) -> list[dict[str, Any]]:
    """Return all rows of a store, by one read."""
    if not store.page_count:
        return []
    pages = store.read(np.array([0]), np.array([store.page_count - 1]))
    rows: list[dict[str, Any]] = pages.take(np.arange(len(pages.codes)), store.schema.names).to_pylist()
    return rows


def rows_by_keys(store: MasterStore, keys: pa.Array) -> list[dict[str, Any]]:
    """Return the rows of keys by a look-up, as a left join in the order of a stream."""
    joined = ss.join(pa.table({"k": keys}), store, on={"k": store.key[0]}, how="inner", memory="8MB")
    rows: list[dict[str, Any]] = joined.read_all().to_pylist()
    return rows


def quote_for(server: Server, name: str) -> str:
    """Return an identifier for a statement without parameters."""
    return (
        '"' + name.replace('"', '""') + '"' if isinstance(server, PostgresqlServer) else quoted(name).replace("%%", "%")
    )
