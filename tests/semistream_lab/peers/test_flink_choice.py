"""When Flink takes part, how large its cache is, and which rows it gets."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.core.errors import InvalidSettingError
from semistream_lab.peers.contract import PeerFailedError
from semistream_lab.peers.data import Situation, stream_keys, stream_rows
from semistream_lab.peers.flink import installation
from semistream_lab.peers.flink.installation import FlinkInstallation
from semistream_lab.peers.flink.lookup_join import CACHED_ROW_BYTES, FlinkIdentity, FlinkJdbcLookup, cached_rows
from semistream_lab.peers.flink.stream_files import rows_to_fill, write_stream
from semistream_lab.peers.lookups.postgresql_table import PostgresqlTable


@pytest.fixture
def _with_flink(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "_has_pyflink", lambda _: True)
    monkeypatch.setenv("JAVA_HOME", "/java")


def jars(folder: Path, *names: str) -> Path:
    """Return a folder with empty jars."""
    for name in names:
        (folder / name).touch()
    return folder


CONNECTOR, DRIVER = "flink-connector-jdbc-3.3.0-1.20.jar", "postgresql-42.7.4.jar"
HERE = Path(sys.executable)


def test_a_python_without_flink_is_told_in_one_sentence(tmp_path: Path) -> None:
    for python, sentence in (
        (None, "SEMISTREAM_PEERS_FLINK_PYTHON"),
        (tmp_path / "none", "has no PyFlink"),
        (tmp_path, "has no PyFlink"),
        (HERE, "has no PyFlink"),
    ):
        reason = FlinkIdentity(FlinkInstallation(python)).why_unavailable()
        assert reason is not None
        assert sentence in reason
        assert reason.endswith(".")


@pytest.mark.usefixtures("_with_flink")
def test_without_java_flink_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert FlinkInstallation(HERE).why_unavailable() is None
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "")
    assert "no Java" in (FlinkInstallation(HERE).why_unavailable() or "")


@pytest.mark.usefixtures("_with_flink")
@pytest.mark.parametrize("names", [(), (CONNECTOR,), (DRIVER,), (CONNECTOR, DRIVER, "postgresql-42.7.5.jar")])
def test_the_look_up_needs_exactly_one_connector_and_one_driver(tmp_path: Path, names: tuple[str, ...]) -> None:
    installation = FlinkInstallation(HERE, jars(tmp_path, *names))
    reason = FlinkJdbcLookup(installation, PostgresqlTable(None)).why_unavailable()
    assert reason is not None
    assert "exactly one jar" in reason
    with pytest.raises(PeerFailedError):
        installation.connector_jars()


@pytest.mark.usefixtures("_with_flink")
def test_jars_of_parts_of_the_connector_are_not_loaded_twice(tmp_path: Path) -> None:
    folder = jars(tmp_path, CONNECTOR, DRIVER, "flink-connector-jdbc-core-3.3.0-1.20.jar", "checker-qual-3.42.0.jar")
    assert [jar.name for jar in FlinkInstallation(HERE, folder).connector_jars()] == [CONNECTOR, DRIVER]


@pytest.mark.usefixtures("_with_flink")
def test_with_flink_the_look_up_still_needs_jars_and_a_server(tmp_path: Path) -> None:
    assert FlinkIdentity(FlinkInstallation(HERE)).why_unavailable() is None
    reasons = [
        FlinkJdbcLookup(FlinkInstallation(HERE, folder), PostgresqlTable(None)).why_unavailable() or ""
        for folder in (None, jars(tmp_path, CONNECTOR, DRIVER))
    ]
    assert "SEMISTREAM_PEERS_FLINK_JARS" in reasons[0]
    assert "SEMISTREAM_PEERS_POSTGRESQL" in reasons[1]


def test_the_cache_has_the_memory_of_all_workers_together() -> None:
    one, two = (cached_rows(Situation.of(1000, 10, "64MB", 1.0, cores)) for cores in (1, 2))
    assert 0.999 < one * CACHED_ROW_BYTES / 64_000_000 <= 1
    assert 0.999 < two * CACHED_ROW_BYTES / 128_000_000 <= 1
    assert CACHED_ROW_BYTES == 688  # as a histogram of Java's heap shows it
    with pytest.raises(InvalidSettingError):
        cached_rows(Situation.of(1000, 10, "100B", 1.0, 2))


@given(rows=st.integers(1, 9000), cores=st.integers(1, 4), first=st.integers(0, 10**9))
def test_files_hold_every_row_of_the_stream_once_and_tasks_stay_side_by_side(
    tmp_path_factory: pytest.TempPathFactory, rows: int, cores: int, first: int
) -> None:
    folder = tmp_path_factory.mktemp("stream")
    situation = Situation.of(500, 10, "16MB", 1.0, cores)
    write_stream(folder, "some", situation, first, rows)
    files = sorted((folder / "some").iterdir())
    assert len(files) == cores
    types = {"value": pa.int64(), "key": pa.int64()}
    options = pc.ReadOptions(column_names=list(types)), pc.ConvertOptions(column_types=types)
    tables = [pc.read_csv(file, options[0], convert_options=options[1]) for file in files if file.stat().st_size]
    assert pa.concat_tables(tables).sort_by("value").equals(stream_rows(situation, first, rows))
    sizes = [table.num_rows for table in tables]
    assert max(sizes) - min(sizes) <= 1000
    assert all(np.all(np.diff(table.column("value").to_numpy()) > 0) for table in tables)
    assert not list(folder.glob(".*"))


def test_a_cache_is_filled_by_as_many_rows_as_bring_enough_keys() -> None:
    situation = Situation.of(200_000, 10, "16MB", 1.0, 2)
    rows = rows_to_fill(situation, 5, 30_000, 3_000_000)
    assert len(np.unique(stream_keys(situation, np.arange(5, 5 + rows)))) >= 30_000
    assert len(np.unique(stream_keys(situation, np.arange(5, 5 + rows - 100_000)))) < 30_000
    assert rows_to_fill(situation, 5, 10**9, 300_000) == 300_000
    assert rows_to_fill(Situation.of(10, 10, "16MB", 1.0, 2), 5, 10**9, 300_000) == 100_000
