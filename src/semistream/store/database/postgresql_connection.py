"""Connections to PostgreSQL that verify the server, end what takes too long, and read only unless told otherwise."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from semistream.core.extras import require
from semistream.store.database.address import DatabaseAddress
from semistream.store.database.sessions import Fault

require("psycopg", extra="postgresql", purpose="A table in PostgreSQL")

import psycopg  # noqa: E402

_PATIENCE_SECONDS = 1.0
"""How much later than the server we end a query."""
# States of SQL that may pass: lost or too many connections, shutdowns, starts, time-outs, conflicts and bad disks.
_PASSING = ("08", "53", "57", "40", "55P03", "58")
_DENIED = ("28", "42501")


class TimedConnection(psycopg.Connection[Any]):
    """A connection whose queries end with an error when their time is over, also if the server says nothing."""

    _end = math.inf
    _server_seconds = 0.0

    def end_after(self, seconds: float) -> None:
        """Give the queries that follow so much time, by the server's clock and, a little more, by ours."""
        self._end = time.monotonic() + seconds + _PATIENCE_SECONDS
        if self._server_seconds != seconds:
            milliseconds = str(max(1, math.ceil(1000 * seconds)))
            self.execute("SELECT set_config('statement_timeout', %s, false)", (milliseconds,))
            self._server_seconds = seconds

    def wait(self, gen: Any, interval: float = 0.1, *others: Any, **named: Any) -> Any:
        """Wait for what the generator waits for, but no longer than allowed."""
        return super().wait(self._limited(gen), interval, *others, **named)

    def _limited(self, waits: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        try:
            state = next(waits)
            while True:
                ready = yield state
                if time.monotonic() > self._end:
                    raise TimeoutError
                state = waits.send(ready)
        except StopIteration as stop:
            return stop.value


def connect(address: DatabaseAddress, *, read_only: bool = True) -> TimedConnection:
    """Return a new connection; the password comes from PGPASSWORD or from libpq's own file."""
    settings: dict[str, Any] = {
        "host": address.host,
        "port": address.port,
        "dbname": address.database,
        "sslmode": address.sslmode,
        "connect_timeout": max(1, math.ceil(address.connect_seconds)),
        "application_name": "semistream",
        "client_encoding": "UTF8",
        "options": f"-c default_transaction_read_only={'on' if read_only else 'off'} -c TimeZone=UTC -c jit=off",
    }
    if address.user is not None:
        settings["user"] = address.user
    if address.sslrootcert is not None:
        settings["sslrootcert"] = address.sslrootcert
    elif address.sslmode.startswith("verify") and not _has_root_certificate():
        settings["sslrootcert"] = "system"
    return TimedConnection.connect(autocommit=True, **settings)


def _has_root_certificate() -> bool:
    return "PGSSLROOTCERT" in os.environ or (Path.home() / ".postgresql" / "root.crt").exists()


def fault_of(error: Exception) -> Fault | None:
    """Return what an error of the driver means; None if it is none of the driver's."""
    if isinstance(error, TimeoutError):
        return Fault("does not answer in time", is_passing=True)
    if not isinstance(error, psycopg.Error):
        return None
    state = error.sqlstate
    if state is None:
        return _without_state(error)
    said = (error.diag.message_primary or type(error).__name__).rstrip(".")
    if state.startswith(_DENIED):
        advice = "check the user, PGPASSWORD or ~/.pgpass, and what the user may read"
        return Fault(f"refuses access ({said})", is_passing=False, advice=advice)
    return Fault(f"reports an error ({said})", is_passing=state.startswith(_PASSING))


def _without_state(error: psycopg.Error) -> Fault | None:
    """Return what an error means that the client has found, such as one while it connected."""
    said = str(error)
    if "password authentication failed" in said or "no password supplied" in said or "pg_hba.conf" in said:
        advice = "check the user, PGPASSWORD or ~/.pgpass, and the server's pg_hba.conf"
        return Fault("refuses the user", is_passing=False, advice=advice)
    if 'FATAL:  database "' in said and "does not exist" in said:
        return Fault("does not exist", is_passing=False, advice="check the name of the database")
    if any(word in said.lower() for word in ("certificate", "ssl error", "does not support ssl", "sslmode")):
        advice = "name the authority's certificate by sslrootcert in the address, or check whom you are talking to"
        return Fault("cannot be verified by its certificate", is_passing=False, advice=advice)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return Fault("cannot be reached or has closed the connection", is_passing=True)
    return None
