"""Look-ups of a table that is far away: from copies on the local disk and from memory, the same rows as in a folder."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from far_folder import FarFolder, tiered_folder

from semistream.core.arrays import Int64Array
from semistream.core.errors import CorruptTableError
from semistream.engine.rows.merged_rows import MergedRows, found_place
from semistream.store.found_rows import RowReader
from semistream.store.paged import PagedFileStore, build
from semistream.store.paged.read.row_reader import FileRowReader
from semistream.store.places.place import Place
from semistream.store.places.tier_file import BLOCK_BYTES

COUNT = 8_000
NAMES = ["text", "price"]
READ_BYTES = 20_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder in which a table of 100 blocks lies far away."""
    ids = pa.array(range(0, 3 * COUNT, 3), pa.int64())
    texts = [None if number % 7 == 0 else f"{number} " + "x" * (number % 200) for number in range(COUNT)]
    prices = [None if number % 5 == 0 else number / 4 for number in range(COUNT)]
    rows = pa.table({"id": ids, "text": texts, "price": prices})
    build(rows, tmp_path / "far", "id", page_bytes=2048)
    return tmp_path


def reader_of(store: PagedFileStore, max_bytes: int = 10_000_000) -> RowReader:
    reader = store.row_reader(NAMES, max_bytes, READ_BYTES)
    assert isinstance(reader, FileRowReader)
    return reader


def looked_up(store: PagedFileStore, reader: RowReader, codes: Int64Array) -> tuple[list[int], list[dict[str, object]]]:
    """Return how many rows each code has, and the rows."""
    counts: list[int] = []
    rows: list[dict[str, object]] = []
    schema = pa.schema([store.schema.field(name) for name in NAMES])
    while len(counts) < len(codes):
        rest = codes[len(counts) :]
        found = reader.look_up(rest, store.locate(rest))
        assert found.code_count
        counts += np.diff(found.bounds).tolist()
        taken = MergedRows(schema, None, found.columns).take(found_place(np.arange(found.bounds[-1])))
        rows += pa.RecordBatch.from_arrays(taken, schema=schema).to_pylist()
    return counts, rows


def some_codes(chance: random.Random, count: int) -> Int64Array:
    return np.array(sorted(chance.sample(range(-5, 3 * COUNT + 5), count)), dtype=np.int64)


@pytest.mark.parametrize("blocks", [0, 40, 400])
def test_rows_are_those_of_a_folder_with_a_tier_of_any_size_or_none(folder: Path, blocks: int) -> None:
    place: Place = tiered_folder(folder, blocks * BLOCK_BYTES) if blocks else FarFolder(folder / "far")
    chance = random.Random(blocks)
    with PagedFileStore(folder / "far") as near, PagedFileStore(place) as far:
        expected, found = reader_of(near), reader_of(far)
        for turn in range(4):
            codes = some_codes(chance, 1 if turn == 3 else 300)
            assert looked_up(far, found, codes) == looked_up(near, expected, codes)
        assert found.page_reads == expected.page_reads
        if blocks == 400:
            looked_up(far, found, np.arange(0, 3 * COUNT, 3))
            before = place.traffic.remote_requests
            looked_up(far, found, np.arange(0, 3 * COUNT, 3))
            assert place.traffic.remote_requests == before, "all of it is near by now"


def test_a_look_up_keeps_to_its_memory_and_goes_on_where_it_stopped(folder: Path) -> None:
    codes = np.arange(0, 3 * COUNT, 3)
    with PagedFileStore(folder / "far") as near, PagedFileStore(FarFolder(folder / "far")) as far:
        whole = looked_up(near, reader_of(near), codes)
        small = reader_of(far, 100_000)
        first = small.look_up(codes, far.locate(codes))
        assert 0 < first.code_count < len(codes)
        assert looked_up(far, small, codes) == whole


def test_copies_that_are_damaged_or_go_are_fetched_again(folder: Path) -> None:
    place, chance = tiered_folder(folder, 400 * BLOCK_BYTES), random.Random(1)
    with PagedFileStore(folder / "far") as near, PagedFileStore(place) as far:
        expected, found = reader_of(near), reader_of(far)
        looked_up(far, found, np.arange(0, 3 * COUNT, 3))
        for turn in range(2):
            (file,) = (folder / "tier").rglob("*.blocks")
            with file.open("r+b") as copies:
                for _ in range(5):
                    copies.seek(chance.randrange(file.stat().st_size - 10))
                    copies.write(b"\0" * 10 if turn % 2 else b"damaged...")
            codes = some_codes(chance, 1000)
            assert looked_up(far, found, codes) == looked_up(near, expected, codes)


@pytest.mark.parametrize("blocks", [0, 400])
def test_a_page_that_is_damaged_far_away_is_an_error_that_names_it(folder: Path, blocks: int) -> None:
    place: Place = tiered_folder(folder, blocks * BLOCK_BYTES) if blocks else FarFolder(folder / "far")
    with PagedFileStore(place) as far:
        (data,) = (folder / "far").glob("data-*")
        offset = int(far.entries.offsets[7])
        with data.open("r+b") as file:
            file.seek(offset + 600)
            file.write(b"damaged")
        reader = reader_of(far)
        looked_up(far, reader, far.first_codes[8:20].copy())
        with pytest.raises(CorruptTableError, match=r"[Pp]age 7 .*checksum"):
            looked_up(far, reader, far.first_codes[3:20].copy())
