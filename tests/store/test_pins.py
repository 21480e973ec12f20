"""Pins: the first caller decides which version a batch sees, for good."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from semistream.core.errors import CorruptTableError, InvalidSettingError, SemistreamError
from semistream.core.file_system import System, installed
from semistream.master_table import MasterTable
from semistream.store.paged.format.layout import manifest_name
from semistream.store.paged.versions import pins
from semistream.store.places.local_folder import LocalFolder
from semistream.store.places.place import Lease


@pytest.fixture
def table(tmp_path: Path) -> MasterTable:
    """Return a small table."""
    return MasterTable.build(rows(1), tmp_path / "t", "k")


def rows(value: int) -> pa.Table:
    return pa.table({"k": [1, 2, 3], "v": [value] * 3})


def test_a_batch_stays_with_the_version_it_was_first_pinned_to(table: MasterTable) -> None:
    assert pins.pin(LocalFolder(table.path), "query", 0) == 1
    table.merge(rows(2))
    assert table.version == 2
    assert pins.pin(LocalFolder(table.path), "query", 0) == 1
    assert pins.pin(LocalFolder(table.path), "query", 1) == 2
    assert pins.pin(LocalFolder(table.path), "other", 0) == 2
    assert pins.pin(LocalFolder(table.path), "given", 0, 1) == 1
    assert pins.pin(LocalFolder(table.path), "given", 0, 2) == 1, "the first one has won"


def test_of_callers_that_race_one_wins_and_all_see_its_version(table: MasterTable) -> None:
    for version in range(2, 9):
        table.merge(rows(version))
    for batch in range(20):
        start = threading.Barrier(8)
        seen: list[int] = []

        def race(version: int, batch: int = batch, start: threading.Barrier = start, seen: list[int] = seen) -> None:
            start.wait()
            seen.append(pins.pin(LocalFolder(table.path), "query", batch, version))

        threads = [threading.Thread(target=race, args=(version,)) for version in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(seen) == 8
        assert len(set(seen)) == 1
        assert pins.pin(LocalFolder(table.path), "query", batch) == seen[0]
    left = os.listdir(table.path / "pins" / "query")  # noqa: PTH208
    assert all(name.endswith(".json") for name in left), "no half-written file stays"


def test_a_vacuum_keeps_what_the_two_newest_pins_of_each_query_name(table: MasterTable) -> None:
    for version in range(2, 8):
        table.merge(rows(version))
    for batch, version in enumerate([1, 2, 3]):
        pins.pin(LocalFolder(table.path), "a", batch, version)
    pins.pin(LocalFolder(table.path), "b", 99, 5)
    # By number, not as texts: 9 is older than 10.
    for batch, version in [(9, 1), (10, 4), (11, 4)]:
        pins.pin(LocalFolder(table.path), "c", batch, version)
    assert pins.pinned_versions(LocalFolder(table.path)) == {2, 3, 4, 5}
    assert table.vacuum(keep_for=0)["kept"] == [2, 3, 4, 5, 7]
    for version in (2, 3, 4, 5, 7):
        with table.open(version) as store:
            assert store.version == version
        table.verify(version)
    for batch in (3, 4):
        pins.pin(LocalFolder(table.path), "a", batch)
    assert table.vacuum(keep_for=0)["kept"] == [4, 5, 7]


def test_pins_of_long_ago_are_forgotten_and_those_of_late_are_not(table: MasterTable) -> None:
    for batch in range(50):
        pins.pin(LocalFolder(table.path), "query", batch)
    left = {int(path.stem) for path in (table.path / "pins" / "query").iterdir()}
    assert {48, 49} <= left
    assert len(left) <= 12


def test_a_version_that_is_gone_cannot_be_pinned(table: MasterTable) -> None:
    table.merge(rows(2))
    table.vacuum(keep_for=0)
    with pytest.raises(SemistreamError, match=r"Version 1 .* is gone"):
        pins.pin(LocalFolder(table.path), "query", 0, 1)
    assert pins.pin(LocalFolder(table.path), "query", 0) == 2, "the failed attempt has left no pin"


def test_a_version_that_vanishes_between_choice_and_pin_is_not_pinned(
    table: MasterTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = LocalFolder.lease
    chosen: list[str] = []

    def vacuum_then_lease(place: LocalFolder, name: str) -> Lease:
        chosen.append(name)
        if len(chosen) == 1:
            table.merge(rows(2))
            table.vacuum(keep_for=0)
        return real(place, name)

    monkeypatch.setattr(LocalFolder, "lease", vacuum_then_lease)
    assert pins.pin(LocalFolder(table.path), "query", 0) == 2
    assert chosen[0] == manifest_name(1)
    assert table.open(2).version == 2


@pytest.mark.parametrize("owner", ["", "..", "../up", "a/b", ".hidden", "a\0b", "x" * 200, "a b", "-x", "é"])
def test_names_that_could_leave_the_folder_are_refused(table: MasterTable, owner: str) -> None:
    with pytest.raises(InvalidSettingError, match="cannot name a pin"):
        pins.pin(LocalFolder(table.path), owner, 0)
    assert not (table.path / "pins").exists()


def test_strange_files_among_the_pins_do_not_stop_a_vacuum(table: MasterTable) -> None:
    pins.pin(LocalFolder(table.path), "query", 0)
    (table.path / "pins" / "stray").write_text("no folder")
    (table.path / "pins" / "query" / "notes.txt").write_text("no pin")
    (table.path / "pins" / "empty").mkdir()
    table.merge(rows(2))
    assert table.vacuum(keep_for=0)["kept"] == [1, 2]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": "x"}', b'{"other": 1}'])
def test_a_damaged_pin_is_told_in_one_sentence(table: MasterTable, content: bytes) -> None:
    pins.pin(LocalFolder(table.path), "query", 0)
    (table.path / "pins" / "query" / "0.json").write_bytes(content)
    with pytest.raises(SemistreamError, match=r"0\.json"):
        pins.pin(LocalFolder(table.path), "query", 0)
    with pytest.raises(SemistreamError, match=r"0\.json"):
        table.vacuum()


def test_no_single_flipped_bit_of_a_pin_reads_as_another_version(table: MasterTable) -> None:
    for version in range(2, 12):
        table.merge(rows(version))
    assert pins.pin(LocalFolder(table.path), "query", 0) == 11
    path = table.path / "pins" / "query" / "0.json"
    whole = path.read_bytes()
    for place in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        try:
            assert pins.pin(LocalFolder(table.path), "query", 0) == 11
        except SemistreamError as error:
            if "0.json is damaged" not in str(error):
                raise


def test_the_pin_of_another_batch_or_query_in_its_place_is_noticed(table: MasterTable) -> None:
    pins.pin(LocalFolder(table.path), "query", 0)
    pins.pin(LocalFolder(table.path), "other", 1)
    table.merge(rows(2))
    pins.pin(LocalFolder(table.path), "query", 1)
    folder = table.path / "pins" / "query"
    for other in (folder / "0.json", table.path / "pins" / "other" / "1.json"):
        (folder / "1.json").write_bytes(other.read_bytes())
        with pytest.raises(SemistreamError, match=r"1\.json is damaged"):
            pins.pin(LocalFolder(table.path), "query", 1)


def test_pins_of_an_earlier_semistream_stay_readable(table: MasterTable) -> None:
    table.merge(rows(2))
    folder = table.path / "pins" / "query"
    folder.mkdir(parents=True)
    (folder / "0.json").write_text('{"version": 1}')
    assert pins.pin(LocalFolder(table.path), "query", 0) == 1
    assert table.vacuum(keep_for=0)["kept"] == [1, 2]


def test_an_error_of_the_disk_while_a_pin_is_read_is_named(table: MasterTable) -> None:
    pins.pin(LocalFolder(table.path), "query", 0)

    class BadDisk(System):
        def read_into(self, descriptor: int, view: memoryview, offset: int) -> int:
            del descriptor, view, offset
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with installed(BadDisk()), pytest.raises(SemistreamError, match=r"0\.json cannot be read \(Input/output error\)"):
        pins.pin(LocalFolder(table.path), "query", 0)


def test_only_queries_that_have_pinned_nothing_for_long_lose_their_pins(table: MasterTable) -> None:
    for query in ("gone", "idle", "new"):
        pins.pin(LocalFolder(table.path), query, 0)
    table.merge(rows(2))
    pins.pin(LocalFolder(table.path), "idle", 1)
    table.merge(rows(3))
    now = time.time()
    for query, batch, days in (("gone", 0, 9), ("idle", 0, 9), ("idle", 1, 2), ("new", 0, 0)):
        os.utime(table.path / "pins" / query / f"{batch}.json", (now, now - days * 86_400))
    ages = {(pin.owner, pin.batch): round(pin.age_seconds / 86_400) for pin in pins.pins_of(LocalFolder(table.path))}
    assert ages == {("gone", 0): 9, ("idle", 0): 9, ("idle", 1): 2, ("new", 0): 0}
    freed = table.vacuum(keep_for=0, pins_older_than="7 days")
    assert freed["queries"] == ["gone"]
    assert freed["kept"] == [1, 2, 3]
    freed = table.vacuum(keep_for=0, pins_older_than="1 day")
    assert (freed["queries"], freed["kept"]) == (["idle"], [1, 3])
    assert freed["reasons"][1] == ["pinned by query new, batch 0, 0 seconds ago"]
    assert pins.pin(LocalFolder(table.path), "idle", 1) == 3, "should it come back, it goes on with the newest version"


def test_a_vacuum_removes_what_was_left_of_half_written_pins(table: MasterTable) -> None:
    pins.pin(LocalFolder(table.path), "query", 0)
    left = table.path / "pins" / "query" / f".{'a' * 32}"
    left.write_text("half")
    table.vacuum(keep_for=0)
    assert left.exists(), "somebody may be writing it"
    os.utime(left, (0, time.time() - 7200))
    table.vacuum(keep_for=0)
    assert not left.exists()


@pytest.mark.parametrize("batch", [-1, True])
def test_a_number_that_a_vacuum_would_not_see_is_refused(table: MasterTable, batch: int) -> None:
    with pytest.raises(InvalidSettingError):
        pins.pin(LocalFolder(table.path), "query", batch)


def test_info_shows_a_damaged_pin_and_the_sound_ones_while_a_vacuum_refuses(table: MasterTable) -> None:
    table.merge(rows(2))
    pins.pin(LocalFolder(table.path), "sound", 1)
    broken = table.path / "pins" / "broken" / "3.json"
    broken.parent.mkdir()
    broken.write_bytes(b"not a pin")
    about = table.info()
    assert [pin["query"] for pin in about["pins"]] == ["sound"]
    assert about["damaged_pins"] == [str(broken)]
    before = sorted(path.name for path in table.path.iterdir())
    with pytest.raises(CorruptTableError, match=r"broken/3\.json is damaged: restore it, or remove it, but then"):
        table.vacuum(keep_for=0)
    assert sorted(path.name for path in table.path.iterdir()) == before
    broken.unlink()
    table.vacuum(keep_for=0)
    assert table.info()["damaged_pins"] == []
