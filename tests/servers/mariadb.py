"""A MariaDB server on loopback."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from server_process import ServerProcess, free_port, other_user, server_folder

from servers.left_out import left_out

PASSWORD = "canary-of-mariadb"


class MariadbServer:
    """A server with the database `shop`, whose user `clerk` has the password PASSWORD."""

    def __init__(self, daemon: str, installer: str, *settings: str) -> None:
        self._user = other_user("mysql", "nobody")
        self.folder = server_folder("mariadb", self._user)
        self.port = free_port()
        self.tls: Path | None = None
        """Where certificates are, if there are any."""
        data = self.folder / "data"
        common = ["--no-defaults", f"--datadir={data}"]
        command = [installer, *common, "--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(command, check=True, capture_output=True, user=self._user, cwd=self.folder)
        command = [daemon, *common, f"--port={self.port}", "--bind-address=127.0.0.1"]
        command += [f"--socket={self.folder / 'socket'}", f"--pid-file={self.folder / 'pid'}", "--max-connections=50"]
        command += ["--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M", "--skip-name-resolve"]
        self.process = ServerProcess([*command, *settings], self.folder, self._user)
        self._is_new = True

    def start(self) -> None:
        """Start, or start again."""
        self.process.start(self._answers)
        if self._is_new:
            with self.connect("root", "", None) as connection, connection.cursor() as cursor:
                cursor.execute("CREATE DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
                cursor.execute(f"CREATE USER clerk@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'")
                cursor.execute("GRANT ALL ON *.* TO clerk@'127.0.0.1'")
            self._is_new = False

    def _answers(self) -> bool:
        import pymysql

        user, password = ("root", "") if self._is_new else ("clerk", PASSWORD)
        with suppress(pymysql.MySQLError):
            self.connect(user, password, None).close()
            return True
        return False

    def connect(self, user: str = "clerk", password: str = PASSWORD, database: str | None = "shop") -> Any:
        """Return a connection that commits each statement."""
        import pymysql

        socket = {"unix_socket": str(self.folder / "socket")} if user == "root" else {"host": "127.0.0.1"}
        return pymysql.connect(
            **socket, port=self.port, user=user, password=password, database=database, autocommit=True
        )

    def address(self, table: str, key: str = "id", **options: object) -> str:
        """Return the address of a table, without a password."""
        more = "".join(f"&{name}={value}" for name, value in options.items())
        return f"mysql://clerk@127.0.0.1:{self.port}/shop?table={table}&key={key}{more}"

    def load(self, name: str, rows: pa.Table, types: dict[str, str], key: str | None = "id", more: str = "") -> None:
        """Make a table of these rows and columns of these types of the database, with an index on the key."""
        columns = ", ".join(f"`{column}` {kind}" for column, kind in types.items())
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS `{name}`")
            index = "" if key is None else f", INDEX (`{key}`)"
            cursor.execute(f"CREATE TABLE `{name}` ({columns} {more} {index})")
            places = ", ".join(["%s"] * len(types))
            values = [tuple(row.values()) for row in rows.select(list(types)).to_pylist()]
            cursor.executemany(f"INSERT INTO `{name}` VALUES ({places})", values)
            cursor.execute(f"ANALYZE TABLE `{name}`")

    def stop(self) -> None:
        """End the server at once, since its data go, too."""
        self.process.stop(signal.SIGKILL)

    def pause(self) -> None:
        """Let the server answer nothing."""
        self.process.pause()

    def go_on(self) -> None:
        """Let a paused server go on."""
        self.process.go_on()


def new_server(*settings: str) -> MariadbServer:
    """Start a server, or leave the test out if there is none."""
    daemon = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")
    installer = shutil.which("mariadb-install-db")
    if daemon is None or installer is None:
        left_out("MariaDB is not installed: run `make servers`.")
    if importlib.util.find_spec("pymysql") is None:
        left_out("PyMySQL is not installed: run `make install`.")
    server = MariadbServer(daemon, installer, *settings)
    server.start()
    return server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    """Return a server for all tests of this process; its password is in MYSQL_PWD meanwhile."""
    server = new_server()
    before = os.environ.get("MYSQL_PWD")
    os.environ["MYSQL_PWD"] = PASSWORD
    yield server
    if before is None:
        del os.environ["MYSQL_PWD"]
    else:
        os.environ["MYSQL_PWD"] = before
    server.stop()
