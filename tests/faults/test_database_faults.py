"""A database that is killed, paused, full or an impostor: retries, then one sentence; never a miss, never a secret."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import semistream as ss
from semistream.core.errors import InvalidSettingError, MasterUnavailableError, SemistreamError
from semistream.store.contract import MasterStore
from semistream.store.database.address import is_local, parse_address
from servers import mariadb as mariadb_servers
from servers import postgresql as postgresql_servers
from servers.mariadb import MariadbServer
from servers.postgresql import PostgresqlServer

Server = PostgresqlServer | MariadbServer
ROWS = pa.table({"id": range(0, 2000, 2), "name": [f"name {number}" for number in range(1000)]})
TYPES = {"id": "bigint", "name": "varchar(50)"}


@pytest.fixture(scope="module", params=["postgresql", "mariadb"])
def doomed(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Return a server of our own, which may be killed and paused; the password is in the environment."""
    request.getfixturevalue(request.param)  # for the password
    module = postgresql_servers if request.param == "postgresql" else mariadb_servers
    server: Server = module.new_server()
    server.load("products", ROWS, TYPES)
    yield server
    server.process.stop()


def address(server: Server, **options: object) -> str:
    return server.address("products", **{"connect_timeout": 2, "statement_timeout": 2, "retry_for": 20, **options})


def looked_up(store: MasterStore, keys: list[int]) -> list[int]:
    """Return how many rows each key has."""
    reader = store.row_reader(["name"], 1_000_000)
    assert reader is not None
    codes = np.array(keys, dtype=np.int64)
    counts: list[int] = np.diff(reader.look_up(codes, store.locate(codes)).bounds).tolist()
    return counts


def test_a_server_that_was_killed_and_started_again_is_asked_again(doomed: Server) -> None:
    with ss.MasterTable(address(doomed)).open() as store:
        assert looked_up(store, [0, 1, 2]) == [1, 0, 1]
        doomed.process.kill()
        restart = threading.Timer(1.0, doomed.start)
        restart.start()
        try:
            assert looked_up(store, [0, 1, 2]) == [1, 0, 1]
            pages = store.read(np.array([0]), np.array([store.page_count - 1]))
            assert len(pages.codes) == 1000
        finally:
            restart.join()


def test_a_server_that_stays_away_fails_the_join_with_a_sentence_and_is_no_miss(doomed: Server) -> None:
    with ss.MasterTable(address(doomed, retry_for=1)).open() as store:
        stream = (pa.record_batch({"id": pa.array([number, number + 1])}) for number in range(0, 100, 2))
        rows = []
        doomed.process.kill()
        try:
            with pytest.raises(MasterUnavailableError, match=r"cannot be reached|cut the connection") as failed:
                rows = [row for batch in ss.join(stream, store, on="id", how="left") for row in batch.to_pylist()]
        finally:
            doomed.start()
        assert rows == []
        assert "\n" not in str(failed.value)
        assert failed.value.__cause__ is None


def test_a_server_that_is_paused_is_waited_for_and_asked_again(doomed: Server) -> None:
    with ss.MasterTable(address(doomed, statement_timeout=1)).open() as store:
        assert looked_up(store, [4]) == [1]
        doomed.pause()
        go_on = threading.Timer(4.0, doomed.go_on)
        go_on.start()
        try:
            began = time.monotonic()
            assert looked_up(store, [4, 5]) == [1, 0]
            assert time.monotonic() - began < 15
        finally:
            go_on.join()


def test_a_server_that_stays_paused_ends_the_work_in_bounded_time(doomed: Server) -> None:
    with ss.MasterTable(address(doomed, statement_timeout=1, connect_timeout=1, retry_for=2)).open() as store:
        doomed.pause()
        try:
            began = time.monotonic()
            with pytest.raises(MasterUnavailableError, match="retries"):
                looked_up(store, [4])
            assert time.monotonic() - began < 12
        finally:
            doomed.go_on()


def test_connections_that_are_used_up_are_waited_for(doomed: Server) -> None:
    import psycopg
    import pymysql

    held: list[Any] = []
    try:
        while True:
            try:
                held.append(doomed.connect())
            except (psycopg.Error, pymysql.Error):
                break
        assert held
        with pytest.raises(MasterUnavailableError, match="retries"):
            ss.MasterTable(address(doomed, retry_for=1)).open()
        release = threading.Timer(1.0, lambda: [connection.close() for connection in held[:10]])
        release.start()
        try:
            with ss.MasterTable(address(doomed)).open() as store:
                assert looked_up(store, [0]) == [1]
        finally:
            release.join()
    finally:
        for connection in held:
            with_suppressed(connection.close)


def with_suppressed(close: Any) -> None:
    """Close what may be closed already."""
    try:
        close()
    except Exception:
        return


def test_a_wrong_password_is_told_at_once_and_shown_nowhere(
    doomed: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    canary = "canary-password-4711"
    monkeypatch.setenv("PGPASSWORD", canary)
    monkeypatch.setenv("MYSQL_PWD", canary)
    caplog.set_level(logging.DEBUG)
    table = ss.MasterTable(address(doomed))
    began = time.monotonic()
    with pytest.raises(MasterUnavailableError, match=r"PGPASSWORD|MYSQL_PWD") as failed:
        table.open()
    assert time.monotonic() - began < 5
    written = "".join(traceback.format_exception(failed.value)) + caplog.text + "".join(capfd.readouterr())
    for text in (written, repr(table), str(table.address), repr(parse_address(str(table.address)))):
        assert canary not in text
    assert canary.encode() not in pickle.dumps(table)


@pytest.mark.parametrize("place", ["user:hunter2@host", "host", "host/db?password=hunter2&x=host"])
@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_an_address_with_a_password_is_refused_and_not_repeated(scheme: str, place: str) -> None:
    if place == "host":
        with pytest.raises(InvalidSettingError, match="names one database"):
            ss.MasterTable(f"{scheme}://host?table=t&key=k")
        return
    text = f"{scheme}://{place}/db?table=t&key=k"
    with pytest.raises(InvalidSettingError, match=r"PGPASSWORD|MYSQL_PWD") as refused:
        ss.MasterTable(text)
    assert "hunter2" not in "".join(traceback.format_exception(refused.value))
    with pytest.raises(InvalidSettingError, match=r"PGPASSWORD|MYSQL_PWD"):
        parse_address(text)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("postgresql://h/d?key=k", "names its table"),
        ("postgresql://h/d?table=t", "names the key"),
        ("postgresql://h/d?table=a.b.c&key=k", "has dots"),
        ("postgresql://h/d?table=t&key=k&colour=red", "unknown option 'colour'"),
        ("postgresql://h/d?table=t&table=u&key=k", "twice"),
        ("postgresql://h/d?table=t&key=", "no value"),
        ("postgresql://h/d?table=t&key=k&sslmode=prefer", "sslmode"),
        ("postgresql://h/d?table=t&key=k&cache_for=0.5", "at least 1 second"),
        ("postgresql://h/d?table=t&key=k&connect_timeout=0", "longer time"),
        ("postgresql://h:x/d?table=t&key=k", "cannot be read"),
        ("mysql://h/d/e?table=t&key=k", "names one database"),
    ],
)
def test_a_wrong_address_is_refused_with_a_sentence(text: str, part: str) -> None:
    with pytest.raises(InvalidSettingError, match=part):
        parse_address(text)


def test_a_server_elsewhere_is_verified_unless_the_address_says_otherwise() -> None:
    far = "://db.example.com/shop?table=s.products&key=id"
    for scheme in ("postgresql", "mysql"):
        assert parse_address(scheme + far).sslmode == "verify-full"
        assert parse_address(f"{scheme}{far}&sslmode=require").sslmode == "require"
        assert parse_address(f"{scheme}://127.0.0.9/shop?table=t&key=k").sslmode == "disable"
    assert [is_local(host) for host in ("::1", "localhost", "/run/socket", "10.0.0.1", "localhost.evil.org")] == [
        *(True, True, True, False, False)
    ]
    parsed = parse_address("postgresql" + far)
    assert (parsed.schema, parsed.table, parsed.port, parsed.cache_seconds) == ("s", "products", 5432, 60)


def certificates(folder: Path, owner: str) -> tuple[Path, Path]:
    """Make an authority, and a key and a certificate of it for a name; return what belongs to the authority."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)

    folder.mkdir()
    for name in ("ours", "foreign"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name} authority",
                "-keyout", f"{name}.key", "-out", f"{name}.crt")  # fmt: skip
    openssl(
        "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={owner}", "-keyout", "server.key", "-out", "server.csr"
    )
    (folder / "names").write_text(f"subjectAltName=DNS:{owner}")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ours.crt", "-CAkey", "ours.key", "-CAcreateserial",
            "-days", "2", "-extfile", "names", "-out", "server.crt")  # fmt: skip
    return folder / "ours.crt", folder / "foreign.crt"


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_server_with_a_wrong_certificate_is_refused_before_it_gets_the_password(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    import shutil

    request.getfixturevalue(kind)
    # A name that leads to loopback, and one that does not stand in the certificate.
    ours, foreign = certificates(tmp_path / "tls", "localhost")
    folder = Path("/tmp") / f"semistream-tls-{kind}-{time.time_ns()}"
    shutil.copytree(tmp_path / "tls", folder)
    user = "postgres" if kind == "postgresql" else "mysql"
    for file in (folder, *folder.iterdir()):
        try_to_give(file, user)
        file.chmod(0o700 if file.is_dir() else 0o600)
    certificate, secret = folder / "server.crt", folder / "server.key"
    server: Server
    if kind == "postgresql":
        server = postgresql_servers.new_server("ssl=on", f"ssl_cert_file={certificate}", f"ssl_key_file={secret}")
    else:
        server = mariadb_servers.new_server(
            f"--ssl-cert={certificate}", f"--ssl-key={secret}", f"--ssl-ca={folder / 'ours.crt'}"
        )
    try:
        server.load("products", ROWS, TYPES)

        def opened(host: str, **options: object) -> MasterStore:
            text = address(server, retry_for=1, **options).replace("127.0.0.1", host)
            return ss.MasterTable(text).open()

        with opened("localhost", sslmode="verify-full", sslrootcert=ours) as store:
            assert looked_up(store, [0]) == [1]
        with opened("127.0.0.1", sslmode="require") as store:
            assert looked_up(store, [0]) == [1]
        for host, options in (
            ("localhost", {"sslmode": "verify-full", "sslrootcert": foreign}),
            ("localhost", {"sslmode": "verify-ca", "sslrootcert": foreign}),
            ("localhost", {"sslmode": "verify-full"}),
            ("127.0.0.1", {"sslmode": "verify-full", "sslrootcert": ours}),
        ):
            with pytest.raises(MasterUnavailableError, match="certificate"):
                opened(host, **options)
    finally:
        server.process.stop()
        shutil.rmtree(folder)


def try_to_give(file: Path, user: str) -> None:
    """Let a file belong to the user that the server runs as, if we are root."""
    import os
    import shutil

    if os.geteuid() == 0:
        shutil.chown(file, user)


def test_a_server_without_tls_is_refused_where_tls_is_wanted(doomed: Server) -> None:
    with pytest.raises(MasterUnavailableError, match="certificate"):
        ss.MasterTable(address(doomed, sslmode="require", retry_for=1)).open()


@pytest.mark.parametrize(
    ("package", "scheme", "extra"), [("psycopg", "postgresql", "postgresql"), ("pymysql", "mysql", "mysql")]
)
def test_a_missing_driver_is_one_sentence_with_the_name_of_the_extra(package: str, scheme: str, extra: str) -> None:
    program = f"""
import importlib.util, semistream as ss
find = importlib.util.find_spec
from semistream.core import extras
extras.find_spec = lambda name, *others: None if name == {package!r} else find(name, *others)
try:
    ss.MasterTable("{scheme}://127.0.0.1/d?table=t&key=k").open()
except ss.SemistreamError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert f"pip install 'semistream[{extra}]'" in done.stdout, done.stderr
    assert issubclass(MasterUnavailableError, SemistreamError)
