"""Fixtures for tests of stores."""

from __future__ import annotations

import pytest
from database_rows import Server


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest) -> Server:
    """Return each kind of database server."""
    found: Server = request.getfixturevalue(request.param)
    return found
