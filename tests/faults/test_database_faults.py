"""A database that is killed, paused, full or an impostor: retries, then one sentence; never a miss, never a secret."""

from __future__ import annotations

import logging
import os
import pickle
import shutil
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
from server_process import other_user, server_folder

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
    """Return a server of our own with TLS, which may be killed and paused; the password is in the environment."""
    request.getfixturevalue(request.param)  # for the password
    module = postgresql_servers if request.param == "postgresql" else mariadb_servers
    folder = server_folder("tls", other_user("postgres" if request.param == "postgresql" else "mysql", "nobody"))
    certificates(folder)
    certificate, secret = folder / "server.crt", folder / "server.key"
    settings = [f"--ssl-cert={certificate}", f"--ssl-key={secret}", f"--ssl-ca={folder / 'ours.crt'}"]
    if request.param == "postgresql":
        settings = ["ssl=on", f"ssl_cert_file={certificate}", f"ssl_key_file={secret}"]
    server: Server = module.new_server(*settings)
    server.load("products", ROWS, TYPES)
    server.tls = folder
    yield server
    server.stop()
    shutil.rmtree(folder)


def certificates(folder: Path) -> None:
    """Make two authorities, and a key and a certificate of ours for localhost, which belong to the folder's owner."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("ours", "foreign"):
        of_authority = ("-keyout", f"{name}.key", "-out", f"{name}.crt")
        openssl("req", "-x509", *new, "-days", "2", "-subj", f"/CN={name} authority", *of_authority)
    openssl("req", *new, "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr")
    (folder / "names").write_text("subjectAltName=DNS:localhost")
    by_ours = ("-CA", "ours.crt", "-CAkey", "ours.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
    openssl("x509", "-req", "-in", "server.csr", *by_ours, "-out", "server.crt")
    owner = folder.stat()
    for file in folder.iterdir():
        os.chown(file, owner.st_uid, owner.st_gid)
        file.chmod(0o600)


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
            with pytest.raises(MasterUnavailableError, match=r"cannot be reached|closed the connection") as failed:
                rows = [row for batch in ss.join(stream, store, on="id", how="left") for row in batch.to_pylist()]
        finally:
            doomed.start()
        assert rows == []
        assert "\n" not in str(failed.value)
        assert failed.value.__cause__ is None


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [4.0, 60.0])
def test_a_server_that_is_paused_is_waited_for_and_asked_again(doomed: Server, seconds: float) -> None:
    where = address(doomed, statement_timeout=1) if seconds < 60 else doomed.address("products")  # as users have it
    with ss.MasterTable(where).open() as store:
        assert looked_up(store, [4]) == [1]
        doomed.pause()
        go_on = threading.Timer(seconds, doomed.go_on)
        go_on.start()
        try:
            began = time.monotonic()
            assert looked_up(store, [4, 5]) == [1, 0]
            assert seconds - 1 < time.monotonic() - began < seconds + 35
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


def test_a_look_up_goes_on_with_the_connections_that_it_has(doomed: Server) -> None:
    import psycopg
    import pymysql

    with ss.MasterTable(address(doomed)).open() as store:
        held: list[Any] = []
        try:
            while True:
                try:
                    held.append(doomed.connect())
                except (psycopg.Error, pymysql.Error):
                    break
            keys = list(range(0, 200_000, 150))
            for _ in range(50):  # until two queries have met, and one of them wanted a connection more
                assert looked_up(store, keys) == [int(key < 2000) for key in keys]
                if store._database.sessions.retries:  # type: ignore[attr-defined]
                    break
            assert store._database.sessions.retries  # type: ignore[attr-defined]
        finally:
            for connection in held:
                with_suppressed(connection.close)


def test_keys_of_texts_are_asked_for_again_when_the_server_was_killed_in_the_middle(doomed: Server) -> None:
    doomed.load("named", ROWS, TYPES, key="name")
    restarts: list[threading.Timer] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(0, 1200, 100):
            yield pa.record_batch({"name": [f"name {n}" for n in range(number, number + 100)]})
            if number == 500:
                doomed.process.kill()
                restarts.append(threading.Timer(1.0, doomed.start))
                restarts[0].start()

    try:
        options = {"connect_timeout": 2, "statement_timeout": 2, "retry_for": 20}
        joined = ss.join(batches(), doomed.address("named", "name", **options), on="name", how="left")
        found = {row["name"]: row["id"] for batch in joined for row in batch.to_pylist()}
    finally:
        restarts[0].join()
    assert found == {f"name {n}": 2 * n if n < 1000 else None for n in range(1200)}


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
        with pytest.raises(InvalidSettingError, match="must name one database"):
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
        ("postgresql://h/d?key=k", "must name its table"),
        ("postgresql://h/d?table=t", "must name the key"),
        ("postgresql://h/d?table=a.b.c&key=k", "has dots"),
        ("postgresql://h/d?table=t&key=k&colour=red", "unknown option 'colour'"),
        ("postgresql://h/d?table=t&table=u&key=k", "twice"),
        ("postgresql://h/d?table=t&key=", "no value"),
        ("postgresql://h/d?table=t&key=k&sslmode=prefer", "sslmode"),
        ("postgresql://h/d?table=t&key=k&cache_for=0.5", "at least 1 second"),
        ("postgresql://h/d?table=t&key=k&connect_timeout=0", "longer time"),
        ("postgresql://h/d?table=t&key=k&connections=0", "a number from 1 to 16"),
        ("postgresql://h/d?table=t&key=k&connections=two", "a number from 1 to 16"),
        ("postgresql://h:x/d?table=t&key=k", "cannot be read"),
        ("mysql://h/d/e?table=t&key=k", "must name one database"),
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


def test_a_server_with_a_wrong_certificate_is_refused(doomed: Server) -> None:
    ours, foreign = doomed.tls / "ours.crt", doomed.tls / "foreign.crt"

    def opened(host: str, **options: object) -> MasterStore:
        return ss.MasterTable(address(doomed, retry_for=1, **options).replace("127.0.0.1", host)).open()

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


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_server_without_tls_is_refused_where_tls_is_wanted(kind: str, request: pytest.FixtureRequest) -> None:
    with pytest.raises(MasterUnavailableError, match="certificate"):
        ss.MasterTable(address(request.getfixturevalue(kind), sslmode="require", retry_for=1)).open()


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
