"""The PostgreSQL server of the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from postgresql_server import PostgresqlServer, started_server

from servers.left_out import left_out_if_missing

PASSWORD = "canary-of-postgresql"


def new_server(*settings: str) -> PostgresqlServer:
    """Start a server, or leave the test out if there is none."""
    with left_out_if_missing():
        return started_server(PASSWORD, *settings)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """Return a server for all tests of this process; its password is in PGPASSWORD meanwhile."""
    server = new_server()
    before = os.environ.get("PGPASSWORD")
    os.environ["PGPASSWORD"] = PASSWORD
    yield server
    if before is None:
        del os.environ["PGPASSWORD"]
    else:
        os.environ["PGPASSWORD"] = before
    server.stop()
