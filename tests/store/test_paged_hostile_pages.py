"""Pages with a right checksum and wrong content: refused with their name, and never read outside of their bytes."""

from __future__ import annotations

import os
import random
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from semistream.core.errors import CorruptTableError
from semistream.engine.rows.merged_rows import MergedRows, found_place
from semistream.store.paged import PagedFileStore, build
from semistream.store.paged.format.page_head import HEAD_SIZE, open_page

PAGE = 3
NAMES = ["id", "flag", "text", "long", "price", "code"]


def products(count: int = 200) -> pa.Table:
    numbers = range(count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "flag": pa.array([number % 3 == 0 for number in numbers]),
            "text": pa.array([None if number % 7 == 0 else "x" * (number % 9) for number in numbers]),
            "long": pa.array([f"long {number}" for number in numbers], pa.large_string()),
            "price": pa.array([None if number % 5 == 0 else number for number in numbers], pa.int16()),
            "code": pa.array([struct.pack("<Q", number)[:5] for number in numbers], pa.binary(5)),
        }
    )


def views_of(data: Any) -> tuple[Any, ...]:
    """Return the same memory as numbers of 8, 64, 32 and 16 bits."""
    return data, data.view(np.int64), data.view(np.int32), data.view(np.uint16)


class Forger:
    """Changes a page of an open table and its checksum with it."""

    def __init__(self, path: Path, way: str) -> None:
        self.way = way
        build(products(), path, "id", page_bytes=1536)
        self.store = PagedFileStore(path)
        (self._data,) = path.glob("data-*")
        entries = self.store.entries
        self._offset = int(entries.offsets[PAGE])
        end = self._offset + int(entries.lengths[PAGE])
        self.page = self._data.read_bytes()[self._offset : end]
        self.rows = int(entries.row_counts[PAGE])
        self.head_bytes = 8 + struct.unpack_from("<i", self.page, 4)[0]

    def forge(self, content: bytes) -> None:
        """Put other content in the place of the page."""
        assert len(content) == len(self.page)
        descriptor = os.open(self._data, os.O_WRONLY)
        os.pwrite(descriptor, content, self._offset)
        os.close(descriptor)
        self.store.entries.checksums[PAGE] = zlib.crc32(content)

    def changed(self, place: int, form: str, value: int) -> bytes:
        """Return the page with one number in it changed."""
        content = bytearray(self.page)
        struct.pack_into(form, content, place, value)
        return bytes(content)

    def take(self) -> pa.RecordBatch:
        """Take all rows of the page and of the one before it, from what was read or by their codes."""
        if self.way == "look up":
            return self._looked_up()
        pages = self.store.read(np.array([PAGE - 1]), np.array([PAGE]))
        return pages.take(np.arange(len(pages.codes)), NAMES)

    def _looked_up(self) -> pa.RecordBatch:
        reader = self.store.row_reader(NAMES, 100_000)
        assert reader is not None
        first, after = self.store.first_codes[[PAGE - 1, PAGE + 1]].tolist()
        codes = np.arange(first, after, dtype=np.int64)
        answers = reader.look_up(codes, self.store.locate(codes))
        assert answers.code_count == len(codes)
        schema = pa.schema([self.store.schema.field(name) for name in NAMES])
        rows = MergedRows(schema, None, answers.columns).take(found_place(np.arange(answers.bounds[-1])))
        return pa.RecordBatch.from_arrays(rows, schema=schema)

    def buffers(self) -> list[tuple[int, int, int]]:
        """Return where the entry of each buffer stands in the head, where the buffer begins, and its length."""
        head = np.zeros(HEAD_SIZE, dtype=np.int64)
        data = np.frombuffer(self.page, dtype=np.uint8)
        assert open_page(*views_of(data), 0, len(data), self.rows, len(NAMES), 14, head)
        body, _, first = head[:3].tolist()
        entries = [
            (first + 16 * number, *struct.unpack_from("<qq", self.page, first + 16 * number)) for number in range(14)
        ]
        return [(entry, body + offset, length) for entry, offset, length in entries]


@pytest.fixture(params=["take", "look up"])
def forger(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Forger]:
    made = Forger(tmp_path / "t", request.param)
    yield made
    made.store.close()


def refused(forger: Forger) -> None:
    """Assert that the page is refused, with its number, file and place."""
    with pytest.raises(CorruptTableError, match=rf"Page {PAGE} in .*data-\S+ at byte \d+ is wrong: .*build again"):
        forger.take()


def test_the_page_is_right_before_it_is_forged(forger: Forger) -> None:
    forger.forge(forger.page)
    taken = forger.take()
    taken.validate(full=True)
    first = int(forger.store.first_codes[PAGE - 1])
    assert taken.to_pylist() == products().slice(first, taken.num_rows).to_pylist()


def test_no_number_in_the_head_leads_out_of_the_page(forger: Forger) -> None:
    outcomes = {"refused": 0, "taken": 0}
    for place in range(0, forger.head_bytes, 4):
        for value in (0, 1, 2, 4, 7, 8, 64, 4096, 65_535, 2**30, 2**31 - 1, -1, -8, -4096, -(2**31)):
            forger.forge(forger.changed(place, "<i", value))
            try:
                taken = forger.take()
            except CorruptTableError:
                outcomes["refused"] += 1
            else:
                # Another place inside the page, or a number that nobody needs.
                outcomes["taken"] += 1
                rows = forger.rows + int(forger.store.entries.row_counts[PAGE - 1])
                assert taken.num_rows == rows or (forger.way == "look up" and taken.num_rows < rows)
                taken.validate()
    assert min(outcomes.values()) > 100


def test_random_bytes_lead_to_an_error_or_to_rows_but_not_out_of_the_page(forger: Forger) -> None:
    chance = random.Random(5)
    for _ in range(2000):
        content = bytearray(forger.page)
        for _ in range(chance.choice([1, 2, 8])):
            content[chance.randrange(len(content) if chance.random() < 0.3 else forger.head_bytes)] = chance.randrange(
                256
            )
        forger.forge(bytes(content))
        try:
            taken = forger.take()
        except CorruptTableError:
            continue
        for column in taken.columns:
            if not pa.types.is_large_string(column.type) and not pa.types.is_string(column.type):
                column.validate(full=True)
            else:
                column.view(pa.large_binary() if pa.types.is_large_string(column.type) else pa.binary()).validate(
                    full=True
                )


@pytest.mark.parametrize("value", [-8, 4, 2**62, -(2**63), 2**63 - 8, 4096])
def test_a_buffer_that_begins_outside_of_the_page_is_refused(forger: Forger, value: int) -> None:
    for entry, _, length in forger.buffers():
        if length:
            forger.forge(forger.changed(entry, "<q", value))
            refused(forger)


@pytest.mark.parametrize("value", [-1, 2**62, 2**63 - 1, 4096, 0])
def test_a_buffer_that_is_too_long_or_too_short_is_refused(forger: Forger, value: int) -> None:
    for entry, _, length in forger.buffers():
        if length:
            forger.forge(forger.changed(entry + 8, "<q", value))
            refused(forger)


@pytest.mark.parametrize("column", ["text", "long"])
@pytest.mark.parametrize("value", [-1, 2**31 - 1, 300])
def test_offsets_that_lead_out_of_their_buffer_or_back_are_refused(forger: Forger, column: str, value: int) -> None:
    number, form, width = {"text": (5, "<i", 4), "long": (8, "<q", 8)}[column]
    _, begin, length = forger.buffers()[number]
    assert length >= (forger.rows + 1) * width
    for row in range(forger.rows + 1):
        forger.forge(forger.changed(begin + row * width, form, value))
        refused(forger)


def messages(rows: pa.RecordBatch, **options: object) -> list[pa.Message]:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_batch(rows)
    return list(pa.ipc.MessageReader.open_stream(sink.getvalue()))


def opens(message: pa.Buffer, rows: int, nodes: int = 6, buffers: int = 14) -> bool:
    data = np.frombuffer(message, dtype=np.uint8)
    return bool(open_page(*views_of(data), 0, len(data), rows, nodes, buffers, np.zeros(HEAD_SIZE, dtype=np.int64)))


def test_only_plain_record_batches_of_as_many_rows_and_columns_are_pages() -> None:
    rows = products().to_batches()[0]
    schema, batch = messages(rows)
    page = batch.serialize()
    assert opens(page, 200)
    assert opens(batch.serialize(alignment=64), 200)
    assert opens(messages(rows, metadata_version=pa.ipc.MetadataVersion.V4)[1].serialize(), 200)
    assert opens(rows.serialize(), 200)
    assert not opens(page, 199)
    assert not opens(page, 200, nodes=7)
    assert not opens(page, 200, buffers=16)
    assert not opens(schema.serialize(), 200)
    assert not opens(messages(rows, compression="zstd")[1].serialize(), 200)
    assert not opens(page[8:], 200)
    assert not opens(pa.py_buffer(bytes(64)), 0)
    assert not opens(pa.py_buffer(b"\xff" * 64), 0)
    assert not opens(pa.py_buffer(b""), 0)
    for length in range(0, 8 + struct.unpack_from("<i", page.to_pybytes(), 4)[0], 8):
        assert not opens(page[:length], 200)


def test_a_nested_page_of_other_rows_is_refused(tmp_path: Path) -> None:
    build(pa.table({"id": np.arange(9), "list": [[1]] * 9}), tmp_path / "t", "id")
    store = PagedFileStore(tmp_path / "t")
    store.entries.row_counts[0] = 8
    with pytest.raises(CorruptTableError, match=r"Page 0 in .*: it has 9 rows, but the index 8"):
        store.read(np.array([0]), np.array([0])).take(np.array([0]), ["list"])
