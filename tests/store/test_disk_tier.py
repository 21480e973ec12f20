"""The tier on the local disk: right bytes whatever happens to it, and never more than its budget."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from far_folder import FarFolder, read_stretches, tiered_folder, trusted_stretches
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core import file_system
from semistream.core.arrays import UInt8Array
from semistream.core.errors import InvalidSettingError
from semistream.core.file_system import System
from semistream.store.places import tiered_place
from semistream.store.places.disk_tier import DiskTier, tier_folder
from semistream.store.places.tier_file import BLOCK_BYTES, IN_DOUBT, PRESENT
from semistream.store.places.tiered_place import TieredPlace
from semistream.store.tables import checked_disk

SIZE_BYTES = 40 * BLOCK_BYTES + 12_345
BUDGET_BYTES = 20 * BLOCK_BYTES
READER = Path(__file__).with_name("tier_reader.py")


def far_object(folder: Path, seed: int = 0) -> UInt8Array:
    """Put an object, named data, and return its content."""
    (folder / "far").mkdir(exist_ok=True)
    content = np.random.default_rng(seed).integers(0, 256, SIZE_BYTES, dtype=np.uint8)
    (folder / "far" / "data").write_bytes(content.tobytes())
    return content


@pytest.fixture
def content(tmp_path: Path) -> UInt8Array:
    return far_object(tmp_path)


@pytest.fixture
def place(tmp_path: Path, content: UInt8Array) -> TieredPlace:
    assert len(content) == SIZE_BYTES
    return tiered_folder(tmp_path, BUDGET_BYTES)


def all_bytes(place: TieredPlace, step: int = 5 * BLOCK_BYTES) -> UInt8Array:
    """Return the object, read in a few stretches."""
    starts = np.arange(0, SIZE_BYTES, step)
    return np.concatenate(
        [read_stretches(place, "data", np.array([at]), np.array([min(step, SIZE_BYTES - at)])) for at in starts]
    )


def tier_files(folder: Path, suffix: str) -> list[Path]:
    return sorted((folder / "tier").rglob(f"*{suffix}"))


def disk_bytes(folder: Path) -> int:
    return sum(512 * path.stat().st_blocks for path in (folder / "tier").rglob("*") if path.is_file())


def test_what_was_read_once_is_not_fetched_again(place: TieredPlace, content: UInt8Array) -> None:
    offsets, lengths = np.array([10, BLOCK_BYTES - 5]), np.array([4096, 4096])
    expected = np.concatenate([content[10:4106], content[BLOCK_BYTES - 5 : BLOCK_BYTES + 4091]])
    for _ in range(2):
        assert (read_stretches(place, "data", offsets, lengths) == expected).all()
    assert place.traffic.remote_requests == 1, "two neighbouring blocks by one request"
    assert place.traffic.tier_blocks == 2
    assert (place.traffic.tier_hits, place.traffic.tier_misses) == (2, 2)


def test_a_neighbour_comes_with_a_block_while_there_is_room(
    place: TieredPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiered_place, "_ADMITTED_SHARE", 1.0)
    read_stretches(place, "data", np.array([4 * BLOCK_BYTES]), np.array([10]))
    assert place.traffic.tier_blocks == 2
    all_bytes(place)
    place.distrust("data", np.array([[0, SIZE_BYTES, 0]]))
    before, place._tier._room = place.traffic.tier_blocks, 0
    read_stretches(place, "data", np.array([4 * BLOCK_BYTES]), np.array([10]))
    assert place.traffic.tier_blocks == before + 1


def test_what_is_expected_is_there_when_it_is_read(place: TieredPlace, content: UInt8Array) -> None:
    offsets, lengths = np.array([0, 12 * BLOCK_BYTES]), np.array([100, 100])
    place.expect("data", np.stack([offsets, lengths, lengths], axis=1))
    fetched = place.traffic.remote_requests
    assert fetched == 2
    found = read_stretches(place, "data", offsets, lengths)
    assert (found == np.concatenate([content[:100], content[12 * BLOCK_BYTES :][:100]])).all()
    assert place.traffic.remote_requests == fetched
    assert (place.traffic.tier_hits, place.traffic.tier_misses) == (0, 2), "they were not there when asked for"


def test_blocks_between_two_that_came_by_the_same_request_stay_only_while_there_is_room(
    place: TieredPlace, tmp_path: Path, content: UInt8Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiered_place, "_ADMITTED_SHARE", 1.0)
    both = np.array([0, 5 * BLOCK_BYTES]), np.array([10, 10])
    read_stretches(place, "data", *both)
    assert place.traffic.remote_requests == 1
    assert place.traffic.tier_blocks == 6
    assert (all_bytes(place) == content).all()
    before = place.traffic.tier_blocks
    place.distrust("data", np.array([[0, 3 * BLOCK_BYTES, 0]]))
    all_bytes(place)
    read_stretches(place, "data", np.array([30 * BLOCK_BYTES, 32 * BLOCK_BYTES]), np.array([10, 10]))
    assert place.traffic.tier_blocks > before
    assert disk_bytes(tmp_path) <= BUDGET_BYTES


def test_a_tier_of_a_quarter_of_an_object_brings_fewer_bytes_than_none(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    content = np.random.default_rng(1).integers(0, 256, 320 * BLOCK_BYTES, dtype=np.uint8)
    (tmp_path / "far" / "data").write_bytes(content.tobytes())
    place, random = tiered_folder(tmp_path, 80 * BLOCK_BYTES), np.random.default_rng(2)
    place.inside.gap = 0  # type: ignore[attr-defined]
    before, asked_bytes, asked = 0, 0, 0
    for turn in range(120):
        if turn == 60:
            before, asked_bytes, asked, place.traffic.tier_hits = place.traffic.remote_bytes, 0, 0, 0
        offsets = np.sort(random.choice(len(content) // 4096, 20, replace=False)) * 4096
        found = read_stretches(place, "data", offsets, np.full(20, 4096))
        assert (found == np.concatenate([content[at : at + 4096] for at in offsets])).all()
        asked_bytes, asked = asked_bytes + 20 * 4096, asked + 20
    assert place.traffic.tier_hits >= 0.18 * asked, "what it has, it keeps"
    assert place.traffic.remote_bytes - before <= asked_bytes


def test_what_nobody_has_used_for_a_while_makes_room_at_once(tmp_path: Path) -> None:
    far_object(tmp_path)
    (tmp_path / "far" / "data").rename(tmp_path / "far" / "old")
    content, place = far_object(tmp_path, 1), tiered_folder(tmp_path, BUDGET_BYTES)
    whole = np.array([0]), np.array([15 * BLOCK_BYTES])
    read_stretches(place, "old", *whole)
    for _ in range(2):
        read_stretches(place, "data", np.array([0]), np.array([10 * BLOCK_BYTES]))
    assert not place.traffic.tier_hits, "the tier is full, and both objects are in use"
    for file in (tmp_path / "tier").rglob("*.map"):
        os.utime(file, (0, 0))
    place._tier._room = -1
    for _ in range(2):
        found = read_stretches(place, "data", np.array([0]), np.array([10 * BLOCK_BYTES]))
        assert (found == content[: 10 * BLOCK_BYTES]).all()
    assert place.traffic.tier_hits == 1
    assert disk_bytes(tmp_path) <= BUDGET_BYTES


def test_a_block_that_is_used_often_outlives_those_that_are_read_once(place: TieredPlace) -> None:
    hot = np.array([7 * BLOCK_BYTES]), np.array([100])
    for at in range(0, 40, 2):
        read_stretches(place, "data", np.array([at * BLOCK_BYTES]), np.array([10]))
        read_stretches(place, "data", *hot)
    before = place.traffic.tier_misses
    for at in range(1, 40, 2):
        read_stretches(place, "data", *hot)
        read_stretches(place, "data", np.array([at * BLOCK_BYTES]), np.array([10]))
    assert place.traffic.tier_misses - before <= 20, "only the others"
    read_stretches(place, "data", *hot)
    assert place.traffic.tier_misses - before <= 20


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(["read", "read", "read", "expect", "damage", "hole", "map", "again"]), max_size=15))
def test_random_reads_evictions_and_damages_give_the_right_bytes(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        content = far_object(folder)
        place = tiered_folder(folder, BUDGET_BYTES)
        chance = np.random.default_rng(len(steps))
        added_bytes = 0
        for step in ["read", *steps]:
            lengths = chance.integers(1, 3 * BLOCK_BYTES, 6)
            offsets = chance.integers(0, SIZE_BYTES - lengths)
            expected = np.concatenate([content[o : o + n] for o, n in zip(offsets, lengths, strict=True)])
            if step == "again":
                place = tiered_folder(folder, BUDGET_BYTES)
            elif step == "expect":
                place.expect("data", np.stack([offsets, lengths, lengths], axis=1))
            elif step in ("damage", "hole", "map"):
                (path,), (blocks,) = tier_files(folder, ".map"), tier_files(folder, ".blocks")
                states = np.frombuffer(path.read_bytes()[4096:4137], dtype=np.uint8)
                at = int(chance.choice(np.flatnonzero(states == PRESENT)))
                before_bytes = disk_bytes(folder)
                with (path if step == "map" else blocks).open("r+b") as file:
                    file.seek(4096 + int(chance.integers(0, 41)) if step == "map" else at * BLOCK_BYTES)
                    file.write(bytes(10_000) if step == "hole" else b"\2")
                # Where a damaged map says that a block is there, damage to that block puts something there.
                added_bytes += disk_bytes(folder) - before_bytes
            assert (trusted_stretches(place, "data", offsets, lengths, expected) == expected).all()
            assert disk_bytes(folder) <= BUDGET_BYTES + added_bytes


@pytest.mark.parametrize("suffix", [".map", ".blocks"])
@pytest.mark.parametrize("keeps_open", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_file_that_was_cut_short_is_begun_anew(
    tmp_path: Path, place: TieredPlace, content: UInt8Array, suffix: str, keeps_open: bool, share: float
) -> None:
    read_stretches(place, "data", np.array([0]), np.array([5 * BLOCK_BYTES]))
    (path,) = tier_files(tmp_path, suffix)
    os.truncate(path, int(path.stat().st_size * share))
    again = place if keeps_open else tiered_folder(tmp_path, BUDGET_BYTES)
    for _ in range(2):
        assert (all_bytes(again) == content).all()
    assert again.traffic.tier_failures == 0
    assert disk_bytes(tmp_path) <= BUDGET_BYTES


@pytest.mark.parametrize(
    "header", [b"", b"{}", b"[1]", b"\xff\xfe", b'{"magic": "semistream tier 1", "size_bytes": "x"}']
)
def test_a_map_with_another_header_is_begun_anew(
    tmp_path: Path, place: TieredPlace, content: UInt8Array, header: bytes
) -> None:
    all_bytes(place)
    (path,) = tier_files(tmp_path, ".map")
    with path.open("r+b") as file:
        file.write(header.ljust(4096, b"\0"))
    again = tiered_folder(tmp_path, BUDGET_BYTES)
    assert (all_bytes(again) == content).all()
    assert again.traffic.tier_blocks > 0
    assert disk_bytes(tmp_path) <= BUDGET_BYTES


def test_a_tier_that_somebody_removes_is_made_again(tmp_path: Path, place: TieredPlace, content: UInt8Array) -> None:
    all_bytes(place)
    shutil.rmtree(tmp_path / "tier")
    assert (all_bytes(place) == content).all()
    assert place.traffic.tier_failures == 0
    assert tier_files(tmp_path, ".map")
    assert disk_bytes(tmp_path) <= BUDGET_BYTES


def test_other_content_under_the_same_name_never_meets_old_blocks(
    tmp_path: Path, place: TieredPlace, content: UInt8Array
) -> None:
    assert (all_bytes(place) == content).all()
    (old,) = tier_files(tmp_path, ".map")
    other = far_object(tmp_path, seed=1)
    os.utime(tmp_path / "far" / "data", (1e9, 1e9))
    again = tiered_folder(tmp_path, BUDGET_BYTES)
    assert (all_bytes(again) == other).all()
    assert tier_files(tmp_path, ".map") != [old]
    assert disk_bytes(tmp_path) <= BUDGET_BYTES, "both together"


class FullDisk(System):
    """Refuses writes to the tier after so many bytes."""

    def __init__(self, room_bytes: int) -> None:
        self.room_bytes = room_bytes

    def write_at(self, descriptor: int, data: memoryview, offset: int) -> int:
        self.room_bytes -= len(data)
        if self.room_bytes < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write_at(descriptor, data, offset)


@pytest.mark.parametrize("room_bytes", [0, 5000, 3 * BLOCK_BYTES, 1000 * BLOCK_BYTES])
def test_a_full_disk_is_told_once_and_reads_go_on(
    tmp_path: Path,
    place: TieredPlace,
    content: UInt8Array,
    room_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with file_system.installed(FullDisk(room_bytes)):
        for _ in range(3):
            assert (all_bytes(place) == content).all()
    assert place.traffic.tier_failures == (room_bytes < 1000 * BLOCK_BYTES)
    assert [record.getMessage().count("(No space left on device)") for record in caplog.records] == [1] * (
        room_bytes < 1000 * BLOCK_BYTES
    )
    monkeypatch.setattr(tiered_place.time, "monotonic", lambda now=time.monotonic: now() + 1000)
    assert (all_bytes(place) == content).all()
    assert place.traffic.tier_blocks > 0, "it is tried again after a while"
    assert disk_bytes(tmp_path) <= BUDGET_BYTES


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root can give folders away.")
def test_a_folder_of_another_user_is_not_used(tmp_path: Path, place: TieredPlace, content: UInt8Array) -> None:
    (tmp_path / "tier").mkdir()
    os.chown(tmp_path / "tier", 12345, 12345)
    assert (all_bytes(place) == content).all()
    assert place.traffic.tier_failures == 1
    assert not tier_files(tmp_path, "")


def readers(folder: Path, count: int, seconds: float) -> Iterator[subprocess.Popen[str]]:
    for seed in range(count):
        command = [sys.executable, str(READER), str(folder), str(BUDGET_BYTES), str(seed), str(seconds)]
        yield subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_processes_share_a_tier_while_others_are_killed_and_blocks_are_damaged(
    tmp_path: Path, content: UInt8Array
) -> None:
    staying, doomed = list(readers(tmp_path, 2, 2.5)), list(readers(tmp_path, 2, 60))
    chance = random.Random(3)
    for each in (*staying, *doomed):
        assert each.stdout is not None
        assert each.stdout.readline() == "reading\n", each.stderr and each.stderr.read()
    for victim in doomed:
        time.sleep(chance.random() / 2)
        victim.kill()
        victim.communicate()
    written = 0
    for _ in range(8):
        time.sleep(chance.random() / 10)
        for path in tier_files(tmp_path, ".blocks"):
            with path.open("r+b") as file:
                file.seek(chance.randrange(SIZE_BYTES - 10))
                file.write(b"damaged")
                written += 2 * 4096  # perhaps to a hole, which takes room from then on
        assert disk_bytes(tmp_path) <= BUDGET_BYTES + written
    for each in staying:
        output, error = each.communicate(timeout=60)
        assert each.returncode == 0, error
        assert int(output) > 0, "some stretches came from the tier"
    place = tiered_folder(tmp_path, BUDGET_BYTES)
    assert (trusted_stretches(place, "data", np.array([0]), np.array([SIZE_BYTES]), content) == content).all()
    assert disk_bytes(tmp_path) <= BUDGET_BYTES + written


def test_what_a_killed_writer_left_in_doubt_counts_and_is_removed(
    tmp_path: Path, place: TieredPlace, content: UInt8Array
) -> None:
    read_stretches(place, "data", np.array([0]), np.array([10]))
    status = place.status("data")
    assert status is not None
    file = place._file("data")
    assert file is not None
    left = np.arange(20, 24)
    file.set_states(left, IN_DOUBT)
    for block in left.tolist():
        file.write_blocks(block, np.ones(BLOCK_BYTES, dtype=np.uint8))
    assert (all_bytes(place) == content).all(), "what is in doubt is not read"
    assert IN_DOUBT not in file.states()
    assert np.count_nonzero(file.states() == PRESENT) <= place._tier.capacity
    assert disk_bytes(tmp_path) <= BUDGET_BYTES


def test_tiers_of_executors_are_in_their_local_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/one,{tmp_path}/two")
    assert tier_folder(1000).is_relative_to(tmp_path / "one")
    assert tier_folder(1000) != tier_folder(2000), "each keeps to its own budget"
    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    assert tier_folder(1000).is_relative_to(tempfile.gettempdir())


def test_a_tier_that_makes_no_sense_is_refused_or_said_to_be_pointless(tmp_path: Path) -> None:
    assert checked_disk("s3://lake/products", "2GB") == 2_000_000_000
    assert checked_disk("s3://lake/products", None) is None
    with pytest.raises(InvalidSettingError, match=r"1\.0 MB of disk is too little"):
        checked_disk("s3://lake/products", "1MB")
    with pytest.raises(InvalidSettingError, match="mirror the table"):
        checked_disk("postgresql://host/db?table=t&key=k", "2GB")
    with pytest.warns(UserWarning, match="`disk` changes nothing"):
        assert checked_disk(tmp_path, "2GB") is None


def test_a_process_that_is_stopped_with_the_lock_does_not_stop_others(
    tmp_path: Path, place: TieredPlace, content: UInt8Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    from semistream.store.places import disk_tier

    monkeypatch.setattr(disk_tier, "_LOCK_SECONDS", 0.05)
    holder = DiskTier(tmp_path / "tier" / str(BUDGET_BYTES), BUDGET_BYTES)
    with holder._alone():
        assert (all_bytes(place) == content).all()
    assert place.traffic.tier_failures == 1
    assert isinstance(place.inside, FarFolder)
