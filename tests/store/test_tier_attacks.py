"""What somebody may do to a tier on the local disk, and what a long life does to it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from far_folder import FarFolder, read_stretches, tiered_folder, trusted_stretches

from semistream.core.arrays import Int64Array, UInt8Array
from semistream.core.errors import InvalidSettingError
from semistream.engine.reading.page_look_up import PageRowReader
from semistream.generator.zipf import IntegralZipf
from semistream.store.paged.read.paged_file_store import PagedFileStore
from semistream.store.places import tiered_place
from semistream.store.places.disk_tier import DiskTier, scattered
from semistream.store.places.tier_file import BLOCK_BYTES, TierFile
from semistream.store.places.tiered_place import TieredPlace
from semistream.store.tables import build, checked_disk

SHARED = Path(__file__).parents[1] / "shared"


def far_object(folder: Path, blocks: int, name: str = "data") -> UInt8Array:
    """Put an object and return its content."""
    (folder / "far").mkdir(exist_ok=True)
    content = np.random.default_rng(blocks).integers(0, 256, blocks * BLOCK_BYTES, dtype=np.uint8)
    (folder / "far" / name).write_bytes(content.tobytes())
    return content


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def disk_bytes(folder: Path) -> int:
    return sum(512 * path.stat().st_blocks for path in (folder / "tier").rglob("*") if path.is_file())


def first_block(place: TieredPlace, name: str) -> UInt8Array:
    return read_stretches(place, name, np.array([0]), np.array([100]))


def test_objects_that_are_gone_take_neither_the_tier_nor_open_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiered_place, "_ADMITTED_SHARE", 1.0)
    budget_bytes = 40 * BLOCK_BYTES
    place = tiered_folder(tmp_path, budget_bytes)
    opened = open_files()
    for number in range(200):
        content = far_object(tmp_path, 3, f"data-{number}")
        assert (first_block(place, f"data-{number}") == content[:100]).all()
    assert open_files() <= opened + 2 * 40 + 2, "two for each that has a block, and a lock"
    assert disk_bytes(tmp_path) <= budget_bytes
    assert place.traffic.tier_failures == 0
    before = place.traffic.remote_requests
    first_block(place, "data-199")
    assert place.traffic.remote_requests == before, "what came last is still there"


def test_blocks_whose_map_is_gone_are_removed(tmp_path: Path) -> None:
    far_object(tmp_path, 3)
    place = tiered_folder(tmp_path, 40 * BLOCK_BYTES)
    first_block(place, "data")
    (path,) = (tmp_path / "tier").rglob("*.blocks")
    alone = path.with_name("0" * 32 + ".blocks")
    alone.write_bytes(bytes(30 * BLOCK_BYTES))
    read_stretches(place, "data", np.array([2 * BLOCK_BYTES]), np.array([100]))
    place.distrust("data", np.array([[0, 100, 0]]))
    first_block(place, "data")
    assert not alone.exists()


HUGE = json.dumps({"magic": "semistream tier 1", "size_bytes": 10**18, "block_bytes": BLOCK_BYTES}).encode()


@pytest.mark.parametrize("header", [b"[" * 4096, HUGE])
def test_a_header_that_makes_no_sense_is_no_header(tmp_path: Path, header: bytes) -> None:
    content = far_object(tmp_path, 3)
    first_block(tiered_folder(tmp_path, 40 * BLOCK_BYTES), "data")
    (path,) = (tmp_path / "tier").rglob("*.map")
    with path.open("r+b") as file:
        file.write(header.ljust(4096, b"\0"))
    with pytest.raises(ValueError, match=r"header|cut short"):
        TierFile.found(path.parent, path.stem)
    again = tiered_folder(tmp_path, 40 * BLOCK_BYTES)
    assert (first_block(again, "data") == content[:100]).all()
    assert again.traffic.tier_failures == 0


def test_a_tier_that_goes_while_blocks_are_kept_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = far_object(tmp_path, 3)
    place, keep = tiered_folder(tmp_path, 40 * BLOCK_BYTES), DiskTier.keep

    def kept_and_gone(tier: DiskTier, *arguments: object) -> int:
        kept = keep(tier, *arguments)  # type: ignore[arg-type]
        shutil.rmtree(tmp_path / "tier")
        return kept

    monkeypatch.setattr(DiskTier, "keep", kept_and_gone)
    for _ in range(3):
        assert (first_block(place, "data") == content[:100]).all()
    assert place.traffic.tier_failures == 0


@pytest.mark.parametrize("fault", ["drop", "file"])
def test_damage_that_cannot_be_removed_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    content = far_object(tmp_path, 3)
    place = tiered_folder(tmp_path, 40 * BLOCK_BYTES)
    first_block(place, "data")
    (path,) = (tmp_path / "tier").rglob("*.blocks")
    with path.open("r+b") as file:
        file.write(b"damaged")

    def refused(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(DiskTier, fault, refused)
    zero, hundred = np.array([0]), np.array([100])
    assert (trusted_stretches(place, "data", zero, hundred, content[:100]) == content[:100]).all()
    assert place.traffic.tier_failures == 1


def test_a_limit_for_the_size_of_files_is_told_and_reads_go_on(tmp_path: Path) -> None:
    far_object(tmp_path, 40)
    script = f"""
import resource, sys
sys.path.insert(0, {str(SHARED)!r})
import numpy as np
from pathlib import Path
from far_folder import read_stretches, tiered_folder
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
place = tiered_folder(Path({str(tmp_path)!r}), {30 * BLOCK_BYTES})
expected = np.fromfile({str(tmp_path / "far" / "data")!r}, dtype=np.uint8)
for _ in range(2):
    assert (read_stretches(place, "data", np.array([0]), np.array([len(expected)])) == expected).all()
print(place.traffic.tier_failures)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.returncode) == ("1\n", 0), ended.stderr


def test_reads_in_the_order_of_the_blocks_find_as_many_as_the_tier_has(tmp_path: Path) -> None:
    blocks, share, asked = 600, 0.3, 120
    far_object(tmp_path, blocks)
    place = TieredPlace(NoGaps(tmp_path / "far"), DiskTier(tmp_path / "tier" / "x", int(share * blocks * BLOCK_BYTES)))
    chance = np.random.default_rng(5)

    def sweep() -> None:
        chosen = np.sort(chance.choice(blocks, asked, replace=False)) * BLOCK_BYTES
        for some in np.array_split(chosen, 6):
            extents = np.stack([some, np.full(len(some), 10), np.arange(len(some)) * 10], axis=1)
            place.expect("data", extents)
            place.read_ranges("data", extents, np.empty(10 * len(some), dtype=np.uint8))

    for _ in range(10):
        sweep()
    before = place.traffic.tier_hits
    for _ in range(20):
        sweep()
    found = (place.traffic.tier_hits - before) / (20 * asked)
    assert found > 0.6 * share, "a hand that goes in the same order finds hardly any"


class NoGaps(FarFolder):
    """Brings nothing that was not asked for."""

    gap = 0


@pytest.mark.parametrize("count", [1, 2, 3, 10, 97, 1000])
def test_a_scattered_order_has_every_number_once_and_neighbours_far_apart(count: int) -> None:
    order = scattered(count)
    assert sorted(order.tolist()) == list(range(count))
    if count > 10:
        assert np.abs(np.diff(order)).min() > count // 4


def test_a_tier_too_small_for_a_chunk_fetches_no_block_twice(tmp_path: Path) -> None:
    keys = np.arange(40_000)
    build(pa.table({"id": keys, "v": [f"{key:0100d}" for key in keys.tolist()]}), tmp_path / "far", "id")
    tier = DiskTier(tmp_path / "tier" / "x", 64 * BLOCK_BYTES)
    place = TieredPlace(NoGaps(tmp_path / "far"), tier)
    store = PagedFileStore(place)
    assert store.max_expected_pages < store.page_count
    ranks = np.empty(3000, dtype=np.int64)
    IntegralZipf(len(keys), 0.0).ranks_into(np.random.default_rng(1).random(3000), ranks)
    codes: Int64Array = np.unique(ranks % len(keys))
    found = PageRowReader(store, ["v"], max_bytes=1 << 30, read_bytes=100_000).look_up(codes, store.locate(codes))
    assert found.code_count == len(codes)
    needed = len(np.unique(store.entries.addresses[np.unique(store.locate(codes))] // BLOCK_BYTES))
    assert needed > 2 * tier.capacity
    assert place.traffic.tier_hits >= 0
    assert place.traffic.remote_bytes <= 1.3 * needed * BLOCK_BYTES, "pages may reach into a second block"


@pytest.mark.parametrize(
    ("disk", "sentence"),
    [
        ("lots", "'lots' is not a disk size: write a number with KB"),
        (-1, "A disk size must be positive"),
        (True, "True is not a disk size: give a number of bytes"),
        (10**30, "of disk is more than any machine has"),
        ("15MB", r"15\.0 MB of disk is too little"),
    ],
)
def test_odd_sizes_are_told_as_sizes_of_a_disk(disk: int | str, sentence: str) -> None:
    with pytest.raises(InvalidSettingError, match=sentence):
        checked_disk("s3://lake/products", disk)
    assert checked_disk("s3://lake/products", "1TB") == 10**12
