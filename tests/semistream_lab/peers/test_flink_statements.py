"""What Flink is told: quoted names and values, and an address without its password."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream_lab.peers.contract import PeerFailedError
from semistream_lab.peers.flink import statements
from semistream_lab.peers.flink.jdbc_server import JdbcServer
from semistream_lab.peers.flink.running_job import Query, settings
from semistream_lab.peers.lookups.postgresql_table import Reached

SERVER = JdbcServer("jdbc:postgresql://127.0.0.1:1/none", "me", "it's a secret")
_LITERAL = r"'(?:[^']|'')*'"


@given(st.text())
def test_a_quoted_value_ends_where_it_should_and_says_the_same(text: str) -> None:
    shown = statements.literal(text)
    assert re.fullmatch(_LITERAL, shown, re.DOTALL)
    assert shown[1:-1].replace("''", "'") == text


@given(st.text())
def test_a_quoted_name_ends_where_it_should_and_says_the_same(name: str) -> None:
    shown = statements.quoted(name)
    assert re.fullmatch(r"`(?:[^`]|``)*`", shown, re.DOTALL)
    assert shown[1:-1].replace("``", "`") == name


@given(url=st.text(), user=st.text(), password=st.text(min_size=1), table=st.text())
def test_no_value_of_an_address_gets_out_of_its_quotes(url: str, user: str, password: str, table: str) -> None:
    given_back = re.findall(_LITERAL, _options(statements.master_table(JdbcServer(url, user, password), table, 7)))
    values = [one[1:-1].replace("''", "'") for one in given_back]
    options = dict(zip(values[::2], values[1::2], strict=True))
    assert options == {
        "connector": "jdbc",
        "url": url,
        "table-name": table,
        "username": user,
        "lookup.cache": "PARTIAL",
        "lookup.partial-cache.max-rows": "7",
        "password": password,
    }


def test_a_server_without_a_password_is_told_none() -> None:
    assert "password" not in statements.master_table(JdbcServer("jdbc:postgresql://h:1/d", "me"), "t", 1)


def test_the_join_is_a_look_up_by_key_at_the_time_of_a_row() -> None:
    assert statements.query(joined=True) == (
        "INSERT INTO `output` SELECT s.`value`, s.`key`, m.`supplier`, m.`price`, m.`stock`, m.`text` "
        "FROM `stream` AS s LEFT JOIN `master` FOR SYSTEM_TIME AS OF s.at_time AS m ON s.`key` = m.`key`"
    )
    assert "JOIN" not in statements.query(joined=False)


def test_only_an_endless_stream_is_watched_and_only_a_check_is_written() -> None:
    folder = Path("/a folder/it's")
    endless, ending = (statements.stream_table(folder, endless=endless) for endless in (True, False))
    assert "source.monitor-interval" in endless
    assert "source.monitor-interval" not in ending
    assert "'path' = 'file:///a%20folder/it%27s'" in ending
    assert "'connector' = 'blackhole'" in statements.output_table(joined=True)
    assert "'connector' = 'filesystem'" in statements.output_table(joined=True, folder=folder)


def test_nothing_that_flink_starts_listens_beyond_loopback() -> None:
    configured = settings(2, 4711, [Path("/jars/one.jar"), Path("/jars/two.jar")])
    hosts = {value for name, value in configured.items() if name.endswith(("address", "bind-host"))}
    assert hosts == {"127.0.0.1"}
    assert {"rest.bind-address", "jobmanager.bind-host", "taskmanager.bind-host"} <= set(configured)
    assert configured["pipeline.jars"] == "file:///jars/one.jar;file:///jars/two.jar"
    assert configured["parallelism.default"] == "2"
    assert configured["pipeline.object-reuse"] == "true"


def test_a_password_is_not_in_what_is_shown() -> None:
    statement = statements.master_table(SERVER, "t", 1)
    assert "secret" in statement
    shown = repr((SERVER, Reached("h", 1, "d", "me", "secret"), Query([statement], "INSERT")))
    assert "secret" not in shown


@pytest.mark.parametrize(
    ("reached", "url"),
    [
        (Reached("127.0.0.1", 5432, "sales", "me"), "jdbc:postgresql://127.0.0.1:5432/sales"),
        (Reached("::1", 5432, "a/b?c", "me"), "jdbc:postgresql://[::1]:5432/a%2Fb%3Fc"),
        (
            Reached("db", 1, "d", "me", "secret", {"sslmode": "require", "connect_timeout": "5"}),
            "jdbc:postgresql://db:1/d?sslmode=require",
        ),
    ],
)
def test_an_address_becomes_one_of_jdbc_without_its_password(reached: Reached, url: str) -> None:
    server = JdbcServer.of(reached)
    assert server.url == url
    assert server.password == reached.password


@pytest.mark.parametrize("host", ["", "/var/run/postgresql"])
def test_a_server_behind_a_socket_of_the_file_system_is_refused(host: str) -> None:
    with pytest.raises(PeerFailedError, match="by TCP only"):
        JdbcServer.of(Reached(host, 5432, "d", "me"))


def _options(statement: str) -> str:
    return statement.partition(" WITH (")[2]
