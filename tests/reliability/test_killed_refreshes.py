"""A mirror whose refresh is killed anywhere and repeated equals its source, and nothing is applied twice."""

from __future__ import annotations

import contextlib
import gc
import shutil
from pathlib import Path

import pytest
from changing_source import ChangingSource
from killed_refreshes import Products, kill_refreshes
from table_commands import content
from watched_system import WAYS, CountingSystem, FailingSystem, HastySystem, Killed

from semistream.core.errors import SemistreamError
from semistream.core.file_system import installed
from semistream.master_table import MasterTable
from servers.postgresql import PostgresqlServer
from servers.s3 import S3Server


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_mirror_of_postgresql_whose_refreshes_are_killed_equals_its_table(
    postgresql: PostgresqlServer, tmp_path: Path, kills: int
) -> None:
    products = Products(postgresql, f"killed_{kills}")
    assert kill_refreshes(tmp_path / "mirror", products, seed=kills, kills=kills)["kills"] == kills


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_mirror_in_s3_whose_refreshes_are_killed_equals_its_table(
    postgresql: PostgresqlServer, s3: S3Server, kills: int
) -> None:
    products = Products(postgresql, f"killed_s3_{kills}")
    assert kill_refreshes(s3.address("mirror"), products, seed=kills, kills=kills)["kills"] == kills


@pytest.mark.parametrize("way", WAYS)
@installed(HastySystem())
def test_a_refresh_that_is_stopped_anywhere_is_made_up_for_by_the_next_one(tmp_path: Path, way: str) -> None:
    source = ChangingSource(f"killed {way}")
    for key in range(240):
        source.put(key, f"first {key:012d}")
    MasterTable.build(source, tmp_path / "before", "k", page_bytes=512)
    before = dict(source.rows)
    for key in range(0, 240, 7):
        source.put(key, None if key % 3 else f"second {key:011d}")
    calls = CountingSystem()
    shutil.copytree(tmp_path / "before", tmp_path / "counted")
    with installed(calls):
        MasterTable(tmp_path / "counted").refresh()
    for at in range(1 + WAYS.index(way), calls.count + 1, 23):
        mirror = MasterTable(tmp_path / f"at-{at}")
        shutil.copytree(tmp_path / "before", mirror.path)
        stopped = contextlib.suppress(OSError, KeyboardInterrupt, SystemExit, Killed, SemistreamError)
        with installed(FailingSystem(way, at)), stopped:
            mirror.refresh()
        gc.collect()
        is_applied = mirror.version == 2
        assert content(mirror) == (source.rows if is_applied else before)
        assert mirror.info()["mirror"]["position"] == {"log": len(source.log) if is_applied else 240}
        again = mirror.refresh()
        assert content(mirror) == source.rows
        assert again.changed != is_applied, "what was committed was applied once more, or was lost"
        assert again.position == {"log": len(source.log)}
        shutil.rmtree(mirror.path)
