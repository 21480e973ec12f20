"""Connections to MySQL and MariaDB that verify the server and bring columns; they read only unless told otherwise."""

from __future__ import annotations

import math
import os
import ssl
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import UInt8Array
from semistream.core.errors import RowTooLargeError
from semistream.core.extras import require
from semistream.store.database import mysql_rows
from semistream.store.database.address import DatabaseAddress
from semistream.store.database.contract import ResultTooLargeError
from semistream.store.database.sessions import Fault

require("pymysql", extra="mysql", purpose="A table in MySQL or MariaDB")

import pymysql  # noqa: E402
from pymysql.connections import Connection, MySQLResult  # noqa: E402
from pymysql.constants import COMMAND, CR, ER  # noqa: E402
from pymysql.optionfile import Parser  # noqa: E402

_BLOCK_BYTES = 1 << 16
_STRICT = (
    "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_VALUE_ON_ZERO,"
    "NO_ENGINE_SUBSTITUTION"
)
"""A value that does not fit is an error, and is never changed so that it fits; nor is the engine of a table."""
_PATIENCE_SECONDS = 1.0
"""How much later than the server we end a query."""
_DENIED = (
    ER.ACCESS_DENIED_ERROR,
    ER.DBACCESS_DENIED_ERROR,
    ER.TABLEACCESS_DENIED_ERROR,
    ER.COLUMNACCESS_DENIED_ERROR,
    1698,  # access denied by a plugin
)
# Too many connections, a shutdown, a time-out, a deadlock or a query that somebody has ended.
_PASSING = (1040, 1203, 1226, 1053, 1205, 1213, 1317, 1077, 1079, 1152, 1153, 1158, 1159, 1160, 1161, 1969, 3024, 4031)


class ColumnsConnection(Connection):  # type: ignore[misc]
    """A connection whose queries end when their time is over, and whose rows come by columns."""

    _end = math.inf
    _server_seconds = 0.0

    def end_after(self, seconds: float) -> None:
        """Give the queries that follow so much time, by the server's clock and, a little more, by ours."""
        self._end = time.monotonic() + seconds + _PATIENCE_SECONDS
        self._read_timeout = seconds + _PATIENCE_SECONDS
        if self._server_seconds != seconds:
            is_mariadb = "MariaDB" in self.get_server_info()
            name, value = ("max_statement_time", seconds) if is_mariadb else ("max_execution_time", int(1000 * seconds))
            with self.cursor() as cursor:
                cursor.execute(f"SET SESSION {name} = %s", (value,))
            self._server_seconds = seconds

    def columns(
        self, query: str, parameters: Sequence[Any], max_bytes: int = 1 << 62, row_bytes: int = 0
    ) -> list[pa.Array]:
        """Return the columns of a query as bytes.

        What was sent and `row_bytes` for each row may not be more than `max_bytes`: else an error, before all is here.
        """
        with self.cursor() as cursor:
            text = cursor.mogrify(query, tuple(parameters))
        self._execute_command(COMMAND.COM_QUERY, text)
        result = _ColumnsResult(self)
        result.max_bytes, result.row_bytes = max_bytes, row_bytes
        result.read()
        return result.columns

    def block(self) -> bytes:
        """Return some of the bytes that the server sends."""
        if time.monotonic() > self._end:
            raise TimeoutError
        data: bytes = self._rfile.read1(_BLOCK_BYTES)
        if not data:
            raise pymysql.OperationalError(CR.CR_SERVER_LOST, "the server has closed the connection")
        return data


class _ColumnsResult(MySQLResult):  # type: ignore[misc]
    """Takes the packets of rows as they are, and parts them by compiled loops."""

    columns: list[pa.Array]
    connection: Any
    max_bytes: int
    row_bytes: int

    def _read_rowdata_packet(self) -> None:
        received = _Bytes()
        starts = np.empty(1024, dtype=np.int64)
        at = found = 0
        after = mysql_rows.MORE
        while after == mysql_rows.MORE:
            received.append(self.connection.block())
            while True:
                at, found, after = mysql_rows.scan(received.data, at, starts, found)
                if found < len(starts):
                    break
                starts = np.concatenate([starts, np.empty(len(starts), dtype=np.int64)])
            size_bytes = len(received.data) + found * self.row_bytes
            if size_bytes > self.max_bytes:
                self.connection._force_close()  # the server ends a query whose rows nobody takes
                raise ResultTooLargeError(size_bytes)
        if after == mysql_rows.ERROR:
            self.connection._force_close()
            pymysql.err.raise_mysql_exception(received.data[at + mysql_rows.HEAD :].tobytes())
        if after == mysql_rows.HUGE:
            self.connection._force_close()
            raise RowTooLargeError("A row of the database has 16 MiB or more: make a view without its large values.")
        data = received.data
        places = np.empty((self.field_count, found), dtype=np.int64)
        lengths = np.empty((self.field_count, found), dtype=np.int64)
        mysql_rows.split(data, starts[:found], places, lengths)
        self.columns = [mysql_rows.texts_of(data, *of_column) for of_column in zip(places, lengths, strict=True)]
        self.connection = None


class _Bytes:
    """Bytes that grow; what was taken of them before stays as it is."""

    def __init__(self) -> None:
        self._memory: UInt8Array = np.empty(_BLOCK_BYTES, dtype=np.uint8)
        self._size = 0

    @property
    def data(self) -> UInt8Array:
        return self._memory[: self._size]

    def append(self, block: bytes) -> None:
        size = self._size + len(block)
        if size > len(self._memory):
            larger = np.empty(max(size, 2 * len(self._memory)), dtype=np.uint8)
            larger[: self._size] = self.data
            self._memory = larger
        self._memory[self._size : size] = np.frombuffer(block, dtype=np.uint8)
        self._size = size


def connect(address: DatabaseAddress, *, read_only: bool = True) -> ColumnsConnection:
    """Return a new connection; the password comes from MYSQL_PWD or from ~/.my.cnf."""
    user, password = _credentials()
    settings: dict[str, Any] = {"unix_socket": address.host} if address.host.startswith("/") else {}
    if not settings:
        settings = {"host": address.host, "port": address.port}
    context = _tls(address)
    settings |= {"ssl_disabled": True} if context is None else {"ssl": context}
    connection = ColumnsConnection(
        user=address.user or user,
        password=os.environ.get("MYSQL_PWD") or password or "",
        database=address.database,
        charset="utf8mb4",
        autocommit=True,
        connect_timeout=max(1, math.ceil(address.connect_seconds)),
        read_timeout=address.connect_seconds + _PATIENCE_SECONDS,
        write_timeout=address.statement_seconds + _PATIENCE_SECONDS,
        program_name="semistream",
        local_infile=False,
        **settings,
    )
    with connection.cursor() as cursor:
        if read_only:
            cursor.execute("SET SESSION TRANSACTION READ ONLY")
        else:
            cursor.execute("SET SESSION sql_mode = %s", (_STRICT,))
        cursor.execute("SET SESSION time_zone = '+00:00'")
    return connection


def _credentials() -> tuple[str | None, str | None]:
    """Return user and password of the option file; nothing else in it may change where we connect to."""
    options = Parser(interpolation=None)
    options.read(Path.home() / ".my.cnf")
    found = [options.get("client", name) if options.has_option("client", name) else None for name in _NAMED]
    return found[0], found[1]


_NAMED = ("user", "password")


def _tls(address: DatabaseAddress) -> ssl.SSLContext | None:
    if address.sslmode == "disable":
        return None
    context = ssl.create_default_context(cafile=address.sslrootcert)
    if address.sslmode != "verify-full":
        context.check_hostname = False
    if address.sslmode == "require":
        context.verify_mode = ssl.CERT_NONE
    return context


def fault_of(error: Exception) -> Fault | None:
    """Return what an error of the driver means; None if it is none of the driver's."""
    if isinstance(error, pymysql.MySQLError):
        return _of_driver(error)
    if isinstance(error, ssl.SSLError):
        return _unverified()
    if isinstance(error, OSError):
        return Fault("does not answer in time or has closed the connection", is_passing=True)
    return None


def _of_driver(error: pymysql.MySQLError) -> Fault | None:
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    said = str(error.args[1]) if len(error.args) > 1 else type(error).__name__
    if "CERTIFICATE_VERIFY_FAILED" in said or number == CR.CR_SSL_CONNECTION_ERROR or "[SSL" in said:
        return _unverified()
    if number in _DENIED:
        advice = "check the user, MYSQL_PWD or ~/.my.cnf, and what the user may read"
        return Fault("refuses access", is_passing=False, advice=advice)
    if isinstance(error, pymysql.InterfaceError):
        return Fault("has closed the connection", is_passing=True)
    if number >= CR.CR_ERROR_FIRST and number <= 2100:
        return Fault("cannot be reached or has closed the connection", is_passing=True)
    if not number:
        return None
    return Fault(f"reports the error {number} ({said.rstrip('.')})", is_passing=number in _PASSING)


def _unverified() -> Fault:
    advice = "name the authority's certificate by sslrootcert in the address, or check whom you are talking to"
    return Fault("cannot be verified by its certificate", is_passing=False, advice=advice)
