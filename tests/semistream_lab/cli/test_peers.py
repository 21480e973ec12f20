"""The command that compares semistream with its peers: what it shows, writes and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import fail, flat_objects, succeed

SMALL = ("--master-rows", "2000", "--batch-rows", "100", "--turns", "1", "--slow-batches", "2", "--dropped", "1")


@pytest.fixture(autouse=True)
def _no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POSTGRESQL", "REDIS", "FLINK_PYTHON", "FLINK_JARS"):
        monkeypatch.delenv(f"SEMISTREAM_PEERS_{name}", raising=False)


def test_the_list_names_peers_and_what_they_lack() -> None:
    shown = succeed("lab", "peers", "--list")
    assert all(name in shown for name in ("identity", "enrich", "native", "sqlite", "duckdb"))
    assert "SEMISTREAM_PEERS_POSTGRESQL" in shown


def test_a_comparison_writes_its_page_and_results(tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / "peers.json"
    shown = succeed("lab", "peers", "--only", "duckdb", *SMALL, "--out", out, "--json", file)
    assert "duckdb" in shown
    assert str(out / "peers.md") in shown.replace("\n", "")
    (row,) = flat_objects(file.read_text())
    assert row["peer"] == "duckdb"
    assert row["batches"] == 2
    assert row["checked_rows"] == 200
    assert flat_objects((out / "peers.json").read_text()) == [row]
    assert {path.name for path in out.iterdir()} == {"peers.md", "peers.json", "peers.png", "peers.svg"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--only", "flink"), "choose from identity"),
        (("--only", "postgresql"), "SEMISTREAM_PEERS_POSTGRESQL"),
        (("--only", "flink-jdbc-lookup"), "SEMISTREAM_PEERS_FLINK_PYTHON"),
        (("--master-rows", "0"), "--master-rows"),
        (("--turns", "0"), "--turns"),
        (("--memory", "lots"), "not a memory size"),
        (("--json", "/"), "is a directory"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    assert sentence in fail("lab", "peers", *arguments)


def test_an_address_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMISTREAM_PEERS_POSTGRESQL", "postgresql://me:secret@127.0.0.1:1/none")
    monkeypatch.setenv("SEMISTREAM_PEERS_REDIS", "redis://:secret@127.0.0.1:1/0")
    assert "secret" not in succeed("lab", "peers", "--list")
    assert "secret" not in fail("lab", "peers", "--only", "postgresql", *SMALL)


def test_flink_is_found_by_its_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEMISTREAM_PEERS_FLINK_PYTHON", str(tmp_path / "python"))
    monkeypatch.setenv("SEMISTREAM_PEERS_FLINK_JARS", str(tmp_path))
    assert "has no PyFlink" in fail("lab", "peers", "--only", "flink-identity", *SMALL)
