"""Stores that count and slow down reads."""

from __future__ import annotations

import numpy as np
import pytest

from semistream.core.errors import InvalidSettingError
from semistream.store.counting import CountingStore
from semistream.store.memory import MemoryStore
from semistream.store.throttling import ThrottlingStore


@pytest.fixture
def inside() -> MemoryStore:
    return MemoryStore.of_codes(1000, row_bytes=100, page_bytes=1000)


def test_requests_pages_and_bytes_are_counted(inside: MemoryStore) -> None:
    store = CountingStore(inside, log=True)
    store.read(np.array([0, 5]), np.array([2, 5]))
    store.read(np.array([7]), np.array([7]))
    assert (store.counts.requests, store.counts.pages, store.counts.bytes) == (3, 5, 5000)
    assert store.log == [(0, 2), (5, 5), (7, 7)]


def test_without_a_log_only_counts_are_kept(inside: MemoryStore) -> None:
    store = CountingStore(inside)
    store.read(np.array([0]), np.array([2]))
    assert store.log is None


def test_reads_wait_for_latency_and_bandwidth(inside: MemoryStore) -> None:
    waits: list[float] = []
    store = ThrottlingStore(inside, latency_seconds=0.25, bytes_per_second=1000, sleep=waits.append)
    store.read(np.array([0, 5]), np.array([2, 5]))
    assert waits == [2 * 0.25 + 4.0]


def test_a_negative_latency_or_no_bandwidth_is_refused(inside: MemoryStore) -> None:
    for settings in ({"latency_seconds": -1.0}, {"bytes_per_second": 0.0}):
        with pytest.raises(InvalidSettingError):
            ThrottlingStore(inside, **settings)


def test_a_wrapper_is_the_store_inside_to_those_who_compare_versions() -> None:
    inside = MemoryStore.of_codes(100, row_bytes=100)
    codes = np.arange(5, dtype=np.int64)
    for store in (CountingStore(inside), ThrottlingStore(inside)):
        assert (store.identity, store.size_bytes) == (inside.identity, inside.size_bytes)
        assert store.unchanged_since(inside.version, inside.identity)(codes).all()
