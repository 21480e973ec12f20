"""The server of the live page: a few addresses, only GET, only for this machine, and never in a pipeline's way."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from recorded_batches import batch, run_of

import semistream as ss
from semistream.core.errors import InvalidSettingError
from semistream.pipeline import PipelineDescription, read_description
from semistream.pipeline.live import server as servers
from semistream.pipeline.live.about import about
from semistream.pipeline.live.live_page import DEFAULT_PORT, LivePage, live_page
from semistream.pipeline.live.master_watch import MasterWatch
from semistream.pipeline.live.server import LiveServer, json_answer, text_answer

PIPELINE = """
[pipeline]
name = "sales"
checkpoint = "state"
[source]
format = "json"
path = "incoming"
schema = "product_id BIGINT"
[[dimension]]
table = "products"
on = "product_id"
[sink]
format = "noop"
"""


def described(folder: Path, statistics: str = "port = 0", rest: str = PIPELINE) -> PipelineDescription:
    file = folder / "pipeline.toml"
    file.write_text(f"{rest}\n[statistics]\n{statistics}\n")
    return read_description(file)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[LivePage]:
    with live_page(described(tmp_path)) as served:
        assert served is not None
        for one in run_of(10):
            served.add(one)
        yield served


def port_of(page: LivePage) -> int:
    assert page.url is not None
    return int(page.url.rstrip("/").rsplit(":", 1)[1])


def ask(port: int, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return the status, the headers and the body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def test_the_page_is_whole_in_itself_and_may_load_nothing_else(page: LivePage) -> None:
    status, headers, body = ask(port_of(page))
    text = body.decode()
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", text)
    assert "url(" not in text
    assert "@import" not in text
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";") if " " in part)
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert policy["script-src"].startswith("'sha256-")
    assert policy["frame-ancestors"] == "'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert "Python" not in headers["Server"]


def test_all_addresses_answer(page: LivePage) -> None:
    status, _, state = ask(port_of(page), "/state?x=1")
    assert (status, json.loads(state)["totals"]["batches"]) == (200, 10)
    status, headers, metrics = ask(port_of(page), "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b'semistream_up{query="sales"} 1\n' in metrics
    status, _, health = ask(port_of(page), "/health")
    assert (status, json.loads(health)) == (200, {"healthy": True, "complaints": []})
    status, headers, body = ask(port_of(page), "/state", "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 1_000


def test_bad_health_is_another_status(tmp_path: Path) -> None:
    with live_page(described(tmp_path, 'port = 0\nmax_batch_time = "1 second"')) as served:
        assert served is not None
        served.add(batch(began=time.time() - 90, seconds=90.0))
        status, _, health = ask(port_of(served), "/health")
        assert status == 503
        assert json.loads(health)["complaints"] == ["The last batch took 1 min 30 s, longer than 1 s."]


@pytest.mark.parametrize("path", ["/index.html", "/../../etc/passwd", "/live.js", "/state/", "/%2e%2e/", "*"])
def test_no_file_and_no_other_address_is_served(page: LivePage, path: str) -> None:
    status, _, body = ask(port_of(page), path)
    assert (status, body) == (404, b"Not Found.\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "<script>"])
def test_only_get_is_answered(page: LivePage, method: str) -> None:
    status, headers, body = ask(port_of(page), "/state", method)
    assert (status, headers["Allow"], body) == (405, "GET, HEAD", b"Method Not Allowed.\n")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:9999", 200),
        ("127.0.0.1:4050", 200),
        ("[::1]:4050", 200),
        ("evil.example", 403),
        ("evil.example:4050", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("", 403),
    ],
)
def test_on_loopback_only_names_of_this_machine_are_answered(page: LivePage, host: str, status: int) -> None:
    for path in ("/", "/state", "/metrics", "/health"):
        assert ask(port_of(page), path, Host=host)[0] == status


def test_other_names_are_answered_if_the_file_opens_the_page(tmp_path: Path) -> None:
    with live_page(described(tmp_path, 'port = 0\nhost = "0.0.0.0"')) as served:
        assert served is not None
        assert ask(port_of(served), "/health", Host="pipeline.example")[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /state\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
        b"\x00\xff\xfe garbage\r\n\r\n",
        b"GET " + b"/" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"GET / HTTP/9.9.9\r\n\r\n",
    ],
)
def test_odd_requests_are_refused_without_repeating_them(page: LivePage, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port_of(page)), timeout=10) as connection:
        connection.sendall(sent)
        answered = b""
        try:
            while part := connection.recv(65_536):
                answered += part
        except ConnectionResetError:
            pass  # it has not read all that was sent
    assert b"200 OK" not in answered
    assert b"garbage" not in answered
    assert b"Traceback" not in answered
    assert ask(port_of(page), "/health")[0] == 200, "it answers others as before"


def test_idle_connections_do_not_keep_others_out_for_long(page: LivePage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers._Handler, "timeout", 0.3)
    idle = [socket.create_connection(("127.0.0.1", port_of(page))) for _ in range(servers._MAX_CONNECTIONS + 20)]
    try:
        statuses = []
        for _ in range(100):
            try:
                statuses.append(ask(port_of(page), "/health")[0])
            except (OSError, http.client.HTTPException):
                threading.Event().wait(0.05)
                continue
            break
        assert statuses == [200]
    finally:
        for connection in idle:
            connection.close()


def test_an_error_behind_an_address_is_no_error_of_the_server() -> None:
    def fail() -> Any:
        raise ValueError("hunter2")

    server = LiveServer("127.0.0.1", 0, {"/": fail, "/fine": lambda: text_answer("fine")})
    server.start()
    try:
        status, _, body = ask(server.port)
        assert (status, b"hunter2" in body) == (500, False)
        assert ask(server.port, "/fine")[0] == 200
    finally:
        server.stop()


def test_stopping_frees_the_port(tmp_path: Path) -> None:
    with live_page(described(tmp_path)) as served:
        assert served is not None
        port = port_of(served)
    with pytest.raises(OSError, match="refused"):
        ask(port)
    with live_page(described(tmp_path, f"port = {port}")) as again:
        assert again is not None
        assert again.problem is None
    assert not any(thread.name.startswith("semistream-page") for thread in threading.enumerate())


def test_a_port_that_is_taken_is_one_sentence_and_batches_go_on(tmp_path: Path, page: LivePage) -> None:
    taken = port_of(page)
    with live_page(described(tmp_path, f"port = {taken}")) as second:
        assert second is not None
        assert second.url is None
        assert second.problem == (
            f"The pipeline runs without its live page, because port {taken} of 127.0.0.1 is taken: "
            f"set [statistics] port to another one."
        )
        second.add(batch())
        second.look_at(None)
    for host in ("192.0.2.1", "..", "x" * 200):
        with live_page(described(tmp_path, f'port = 1\nhost = "{host}"')) as nowhere:
            assert nowhere is not None
            assert nowhere.problem is not None
            assert "cannot be used" in nowhere.problem


def test_without_a_port_the_first_free_one_is_taken(tmp_path: Path) -> None:
    plain = described(tmp_path, "keys = true")
    assert not plain.statistics.page.wanted
    with live_page(plain) as none:
        assert none is None
    asked = plain.with_page()
    with live_page(asked) as first, live_page(asked) as second:
        assert first is not None
        assert second is not None
        ports = [port_of(first), port_of(second)]
    assert DEFAULT_PORT <= ports[0] < ports[1] < DEFAULT_PORT + 16


def test_a_page_that_cannot_count_says_so_and_raises_nothing(page: LivePage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page._board, "add", lambda _: 1 / 0)
    page.add(batch())
    assert page.problem == "The live page cannot show a batch (ZeroDivisionError)."
    page.look_at(object())


def test_whether_a_batch_runs_is_what_spark_says(page: LivePage) -> None:
    class Query:
        status = {"isTriggerActive": True, "message": "Waiting for data to arrive"}  # noqa: RUF012

    page.look_at(Query)
    assert page._board._running_since is None
    Query.status = {"isTriggerActive": True, "message": "Processing new data"}
    page.look_at(Query)
    assert page._board._running_since is None, "it was asked a moment ago"
    page._next_look = 0.0
    page.look_at(Query)
    assert page._board._running_since is not None


def test_the_page_tells_names_and_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLE", "postgresql://reader@db.example/shop?table=products&key=id")
    monkeypatch.setenv("SECRET", "hunter2")
    text = PIPELINE.replace('"products"', '{ env = "TABLE" }').replace('path = "incoming"', 'path = "s3a://bucket/in/"')
    text += '[spark]\n"spark.hadoop.fs.s3a.secret.key" = { env = "SECRET" }\n'
    with live_page(described(tmp_path, rest=text)) as served:
        assert served is not None
        served.add(batch())
        shown = b"".join(ask(port_of(served), path)[2] for path in ("/", "/state", "/metrics", "/health")).decode()
    assert not [secret for secret in ("hunter2", "db.example", "reader@", "s3a://") if secret in shown]
    assert about(described(tmp_path, rest=text)).source == "json in"


def test_master_tables_are_looked_at_beside_the_page(tmp_path: Path) -> None:
    import pyarrow as pa

    table = ss.MasterTable.build(pa.table({"k": [1, 2, 3]}), tmp_path / "products", key="k")
    gone = ss.MasterTable(tmp_path / "gone")
    watch = MasterWatch([table, gone], every_seconds=60)
    assert [facts.version for facts in watch.facts()] == [None, None]
    watch.look()
    here, away = watch.facts()
    assert (here.name, here.version, here.rows, here.pins, here.is_reachable) == ("products", 1, 3, 0, True)
    assert here.created is not None
    assert (away.name, away.version, away.is_reachable) == ("gone", None, False)
    watch.start()
    watch.stop()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("port = 70000", "[statistics] port must be a whole number of at most 65535, but is 70000."),
        ("port = -1", "[statistics] port must be a whole number of at least 0, but is -1."),
        ('port = "x"', "[statistics] port must be a whole number of at least 0, but is 'x'."),
        (
            'host = "a b"',
            '[statistics] host must be an address of this machine, such as "127.0.0.1" or "0.0.0.0", but is',
        ),
        ("keys = 1", "[statistics] keys must be true or false, but is 1."),
        ('max_batch_time = "0 seconds"', "[statistics] max_batch_time must be a length of time of at least"),
        ('max_master_age = "old"', "[statistics] max_master_age cannot be 'old': write a length of time"),
        ("prot = 1", "[statistics] prot is not a key of this table: did you mean 'port'?"),
    ],
)
def test_wrong_settings_are_one_sentence(tmp_path: Path, settings: str, sentence: str) -> None:
    with pytest.raises(InvalidSettingError) as refused:
        described(tmp_path, settings)
    assert str(refused.value).startswith(sentence)


def test_json_has_no_numbers_that_json_does_not_have() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_answer({"x": float("nan")})
