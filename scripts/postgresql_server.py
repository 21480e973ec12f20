"""A PostgreSQL server on loopback for trying things out."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from server_process import NotInstalledError, ServerProcess, free_port, other_user, pause, server_folder


class PostgresqlServer:
    """A server whose superuser `postgres` and whose reader `reader` have one password."""

    def __init__(self, binaries: Path, password: str, *settings: str) -> None:
        self._binaries = binaries
        self._password = password
        self._user = other_user("postgres", "nobody")
        self.folder = server_folder("postgresql", self._user)
        self.port = free_port()
        self.tls: Path | None = None
        """Where certificates are, if there are any."""
        self._initialise()
        command = [str(binaries / "postgres"), "-D", str(self.folder / "data"), "-p", str(self.port)]
        for setting in (
            "listen_addresses=127.0.0.1",
            f"unix_socket_directories={self.folder}",
            "fsync=off",
            "max_connections=20",
            *settings,
        ):
            command += ["-c", setting]
        self.process = ServerProcess(command, self.folder, self._user)

    def _initialise(self) -> None:
        secret = self.folder / "secret"
        secret.write_text(self._password)
        secret.chmod(0o644)
        command = [str(self._binaries / "initdb"), "-D", str(self.folder / "data"), "-U", "postgres"]
        command += ["-A", "scram-sha-256", "--no-sync", "-E", "UTF8", "--locale", "C", f"--pwfile={secret}"]
        subprocess.run(command, check=True, capture_output=True, user=self._user, cwd=self.folder)

    def start(self) -> None:
        """Start, or start again."""
        self.process.start(self._answers)

    def _answers(self) -> bool:
        import psycopg

        with suppress(psycopg.OperationalError):
            self.connect().close()
            return True
        return False

    def connect(self) -> Any:
        """Return a connection of the superuser, outside of transactions."""
        import psycopg

        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user="postgres",
            password=self._password,
            dbname="postgres",
            autocommit=True,
        )

    def address(self, table: str, key: str = "id", **options: object) -> str:
        """Return the address of a table, without a password."""
        more = "".join(f"&{name}={value}" for name, value in options.items())
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres?table={table}&key={key}{more}"

    def everything(self) -> list[psutil.Process]:
        """Return the process of the server and those that serve connections."""
        server = psutil.Process(self.process.pid)
        return [server, *server.children(recursive=True)]

    def stop(self) -> None:
        """End the server by the signal that does not wait for connections."""
        self.process.stop(signal.SIGQUIT)

    def pause(self) -> None:
        """Let no process of the server answer."""
        for process in self.everything():
            pause(process.pid)

    def go_on(self) -> None:
        """Let a paused server go on."""
        for process in self.everything():
            process.resume()

    def load(self, name: str, rows: pa.Table, types: dict[str, str], key: str | None = "id", more: str = "") -> None:
        """Make a table of these rows and columns of these types of the database, with an index on the key."""
        from psycopg import sql

        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(column), sql.SQL(kind)) for column, kind in types.items()
        )
        table = sql.Identifier(*name.split("."))
        with self.connect() as connection:
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
            connection.execute(sql.SQL("CREATE TABLE {} ({} {})").format(table, columns, sql.SQL(more)))
            with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(table)) as copy:
                for row in rows.select(list(types)).to_pylist():
                    copy.write_row(tuple(row.values()))
            if key is not None:
                connection.execute(sql.SQL("CREATE INDEX ON {} ({})").format(table, sql.Identifier(key)))
            connection.execute(sql.SQL("ANALYZE {}").format(table))


def started_server(password: str, *settings: str) -> PostgresqlServer:
    """Start a server, or raise NotInstalledError if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name)
    on_path = shutil.which("postgres")
    binaries = found[-1] if found else Path(on_path).parent if on_path else None
    if binaries is None:
        raise NotInstalledError("PostgreSQL is not installed: run `make servers`.")
    if importlib.util.find_spec("psycopg") is None:
        raise NotInstalledError("psycopg is not installed: run `make install`.")
    server = PostgresqlServer(binaries, password, *settings)
    server.start()
    return server
