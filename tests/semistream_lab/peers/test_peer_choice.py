"""Which peers take part, and what is said about those that cannot."""

from __future__ import annotations

from importlib import util

import pytest

from semistream.core.errors import InvalidSettingError
from semistream_lab.peers import optional_package
from semistream_lab.peers.lookups.postgresql_rows import PostgresqlLookup, PostgresqlRows
from semistream_lab.peers.lookups.postgresql_table import PostgresqlTable
from semistream_lab.peers.lookups.redis_rows import RedisLookup, RedisRows
from semistream_lab.peers.peers_by_name import Addresses, all_peers, chosen_peers

NOWHERE = Addresses("postgresql://me:secret@127.0.0.1:1/none", "redis://:secret@127.0.0.1:1/0")


@pytest.fixture
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optional_package, "find_spec", lambda _: None)


def test_names_are_unique_and_every_peer_says_what_it_is() -> None:
    peers = all_peers(Addresses())
    assert len({peer.name for peer in peers}) == len(peers)
    assert all(peer.summary for peer in peers)
    assert {"identity", "enrich"} <= {peer.name for peer in peers}


@pytest.mark.usefixtures("_nothing_installed")
def test_without_packages_and_servers_the_others_remain_and_reasons_are_sentences() -> None:
    choice = chosen_peers("", Addresses())
    names = ["identity", "enrich", "join", "native", "broadcast", "cached", "sqlite"]
    assert [peer.name for peer in choice.peers] == names
    flink = {"flink-identity", "flink-jdbc-lookup"}
    assert set(choice.left_out) == {"lmdb", "postgresql", "redis", "duckdb", "polars", *flink}
    assert all(reason.endswith(".") and reason[0].isupper() for reason in choice.left_out.values())
    assert "pip install lmdb" in choice.left_out["lmdb"]
    assert "SEMISTREAM_PEERS_REDIS" in choice.left_out["redis"]
    assert "SEMISTREAM_PEERS_FLINK_PYTHON" in choice.left_out["flink-jdbc-lookup"]


@pytest.mark.usefixtures("_nothing_installed")
def test_a_peer_that_is_named_and_cannot_run_is_an_error() -> None:
    with pytest.raises(InvalidSettingError, match="lmdb cannot run here"):
        chosen_peers("enrich,lmdb", Addresses())


def test_an_unknown_name_is_an_error_that_shows_the_known_ones() -> None:
    with pytest.raises(InvalidSettingError, match="no peer 'flink': choose from identity, enrich"):
        chosen_peers("flink", Addresses())


def test_named_peers_come_once_and_in_their_own_order() -> None:
    choice = chosen_peers("sqlite, identity,sqlite", Addresses())
    assert [peer.name for peer in choice.peers] == ["identity", "sqlite"]


@pytest.mark.parametrize("package", ["psycopg", "redis"])
def test_a_server_that_does_not_answer_is_told_without_its_address(package: str) -> None:
    if util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    peer = PostgresqlLookup(PostgresqlTable(NOWHERE.postgresql)) if package == "psycopg" else RedisLookup(NOWHERE.redis)
    reason = peer.why_unavailable()
    assert reason is not None
    assert "returned an error" in reason
    assert "secret" not in reason


def test_addresses_are_not_in_what_is_shown_of_their_holders() -> None:
    assert NOWHERE.postgresql is not None
    assert NOWHERE.redis is not None
    shown = repr((NOWHERE, PostgresqlRows(NOWHERE.postgresql), RedisRows(NOWHERE.redis)))
    assert "secret" not in shown
