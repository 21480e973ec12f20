"""Checksums of pages, computed by compiled loops."""

from __future__ import annotations

import ctypes
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.store.paged.read.checking import first_damaged, slow_crc32

fixed = settings(max_examples=60, deadline=None, derandomize=True, print_blob=True)


@fixed
@given(st.lists(st.binary(max_size=300), min_size=1, max_size=8), st.data())
def test_the_first_page_whose_bytes_changed_is_named_with_its_checksum(pages: list[bytes], data: st.DataObject) -> None:
    ends = np.cumsum([len(page) for page in pages])
    starts = ends - [len(page) for page in pages]
    memory = np.frombuffer(b"".join(pages) + b"tail", dtype=np.uint8).copy()
    numbers = np.array(data.draw(st.permutations(range(len(pages)))), dtype=np.int64)
    expected = np.zeros(len(pages), dtype=np.uint32)
    expected[numbers] = [zlib.crc32(page) for page in pages]
    assert first_damaged(memory, starts, ends, numbers, expected) == (-1, 0)
    filled = [place for place, page in enumerate(pages) if page]
    if not filled:
        return
    damaged = data.draw(st.sets(st.sampled_from(filled), min_size=1))
    for place in damaged:
        memory[starts[place]] ^= 0x40
    first = min(damaged)
    crc = zlib.crc32(memory[starts[first] : ends[first]].tobytes())
    assert first_damaged(memory, starts, ends, numbers, expected) == (first, crc)


@pytest.mark.parametrize("size", [0, 1, 17, 8192])
def test_the_way_through_python_gives_the_same_number(size: int) -> None:
    data = np.random.default_rng(1).bytes(size)
    held = ctypes.create_string_buffer(data, max(1, size))
    assert slow_crc32(0, ctypes.addressof(held), size) == zlib.crc32(data)
