"""Requests: what is measured of a store, and the constants that are fitted to it."""

from __future__ import annotations

import itertools
import threading
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.core.arrays import Int64Array
from semistream.core.errors import InvalidSettingError
from semistream.store.contract import MasterStore, PageSet
from semistream.store.memory import MemoryStore
from semistream.store.wrapping import WrappingStore
from semistream_lab.cost import request_times
from semistream_lab.cost.request_fit import fit_requests
from semistream_lab.cost.request_times import IN_FLIGHT, SIZES_BYTES, RequestTime, measure_requests

latencies = st.floats(1e-7, 1e-2)
bandwidths = st.floats(1e6, 1e10)


class WatchedStore(WrappingStore):
    """Remembers the ranges that are read and how many reads are under way together."""

    def __init__(self, inside: MasterStore) -> None:
        super().__init__(inside)
        self.ranges: list[tuple[int, int]] = []
        self.max_threads = 0
        self._threads = 0
        self._lock = threading.Lock()

    def read(self, first_pages: Int64Array, last_pages: Int64Array) -> PageSet:
        with self._lock:
            self._threads += 1
            self.max_threads = max(self.max_threads, self._threads)
            self.ranges.append((int(first_pages[0]), int(last_pages[0])))
        try:
            return self.inside.read(first_pages, last_pages)
        finally:
            with self._lock:
                self._threads -= 1


@pytest.fixture
def store() -> WatchedStore:
    return WatchedStore(MemoryStore.of_codes(40_000, row_bytes=120))


def synthetic(seek: float, request: float, bandwidth: float, gain: float = 1.0) -> list[RequestTime]:
    """Return measurements that follow a latency and a bandwidth exactly; `gain` for each doubling in flight."""
    times = []
    for size in SIZES_BYTES:
        times.append(RequestTime(size, 1, True, 1 / (request + size / bandwidth)))
        rate = 1 / (seek + size / bandwidth)
        times.extend(RequestTime(size, count, False, rate * gain**step) for step, count in enumerate(IN_FLIGHT))
    return times


def test_every_size_is_measured_in_sequence_and_with_each_number_in_flight(store: WatchedStore) -> None:
    sizes, reports = (8 << 10, 64 << 10), []
    times = measure_requests(
        store,
        sizes_bytes=sizes,
        in_flight=(1, 3),
        rounds=2,
        round_seconds=0.0,
        progress=lambda what, done, total: reports.append((what, done, total)),
    )
    kinds = [(request.in_flight, request.sequential) for request in times]
    assert kinds == [(1, True), (1, False), (3, False)] * 2
    assert [request.size_bytes for request in times] == pytest.approx(np.repeat(sizes, 3), rel=0.1)
    assert all(request.requests_per_second > 0 for request in times)
    assert [done for _, done, _ in reports] == list(range(12))
    assert {total for _, _, total in reports} == {12}
    assert 1 <= store.max_threads <= 3
    assert all(0 <= first <= last < store.page_count for first, last in store.ranges)


def test_a_sequence_goes_on_where_the_request_before_ended(
    store: WatchedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    milliseconds = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: next(milliseconds) / 1000)
    monkeypatch.setattr(request_times, "time", clock)
    kinds = measure_requests(store, sizes_bytes=(16 << 10,), in_flight=(1,), rounds=1, round_seconds=0.01)
    assert [kind.sequential for kind in kinds] == [True, False]
    pairs = zip(store.ranges, store.ranges[1:], strict=False)
    followed = next((number for number, ((_, last), (first, _)) in enumerate(pairs) if first != last + 1), 0)
    assert followed > 0, "the first requests of all, which are those in sequence, follow each other"


def test_sizes_are_cut_to_a_quarter_of_the_table(store: WatchedStore) -> None:
    times = measure_requests(store, in_flight=(1,), rounds=1, round_seconds=0.0)
    table_bytes = store.range_bytes(0, store.page_count - 1)
    assert max(request.size_bytes for request in times) <= table_bytes / 4
    assert len({request.size_bytes for request in times}) == len(SIZES_BYTES)
    assert max(request.size_bytes for request in times) > table_bytes / 5


def test_a_table_of_one_page_is_measured_by_that_page() -> None:
    times = measure_requests(MemoryStore.of_codes(5, row_bytes=120), in_flight=(1,), rounds=1, round_seconds=0.0)
    assert [(request.size_bytes, request.sequential) for request in times] == [(600, True), (600, False)]


def test_an_empty_table_is_refused() -> None:
    empty = MemoryStore(pa.table({"key": pa.array([], pa.int64())}), "key")
    with pytest.raises(InvalidSettingError, match="nothing to read"):
        measure_requests(empty)


@given(seek=latencies, share=st.floats(0, 1), bandwidth=bandwidths)
def test_exact_measurements_give_their_latencies_and_bandwidth_back(
    seek: float, share: float, bandwidth: float
) -> None:
    costs = fit_requests(synthetic(seek, seek * share, bandwidth))
    smallest = seek + SIZES_BYTES[0] / bandwidth
    assert costs.seek_seconds == pytest.approx(seek, rel=1e-6, abs=1e-6 * smallest)
    assert costs.request_seconds == pytest.approx(seek * share, rel=1e-6, abs=1e-6 * smallest)
    largest = seek + SIZES_BYTES[-1] / bandwidth
    assert SIZES_BYTES[-1] / costs.bytes_per_second == pytest.approx(SIZES_BYTES[-1] / bandwidth, abs=1e-6 * largest)


@given(seek=latencies, more=st.floats(1.01, 10), bandwidth=bandwidths)
def test_a_longer_latency_is_never_fitted_shorter(seek: float, more: float, bandwidth: float) -> None:
    short, long = (fit_requests(synthetic(latency, latency / 2, bandwidth)) for latency in (seek, seek * more))
    assert long.seek_seconds > short.seek_seconds * (1 - 1e-6)


@given(
    st.lists(
        st.tuples(st.sampled_from(SIZES_BYTES), st.sampled_from(IN_FLIGHT), st.booleans(), st.floats(1e-1, 1e7)),
        min_size=1,
        max_size=40,
    )
)
def test_whatever_is_measured_no_cost_is_negative_and_a_sequence_is_never_dearer(
    rows: list[tuple[int, int, bool, float]],
) -> None:
    measured = [RequestTime(SIZES_BYTES[0], 1, False, 1_000.0), *(RequestTime(*row) for row in rows)]
    costs = fit_requests(measured)
    assert 0 <= costs.request_seconds <= costs.seek_seconds
    assert 0 < costs.bytes_per_second < float("inf")
    assert costs.max_in_flight in IN_FLIGHT


def test_noise_of_a_tenth_moves_the_fit_by_little() -> None:
    random = np.random.default_rng(1)
    noisy = [
        RequestTime(row.size_bytes, row.in_flight, row.sequential, row.requests_per_second * random.uniform(0.9, 1.1))
        for row in synthetic(100e-6, 20e-6, 1e9)
    ]
    costs = fit_requests(noisy)
    assert costs.seek_seconds == pytest.approx(100e-6, rel=0.25)
    assert costs.bytes_per_second == pytest.approx(1e9, rel=0.25)


def test_bandwidth_is_the_highest_seen_where_size_makes_no_difference() -> None:
    measured = [RequestTime(size, 1, False, 1_000.0) for size in SIZES_BYTES]
    costs = fit_requests(measured)
    assert costs.seek_seconds == pytest.approx(1e-3)
    assert costs.request_seconds == costs.seek_seconds
    assert SIZES_BYTES[-1] / costs.bytes_per_second < 1e-2


@pytest.mark.parametrize(("gain", "expected"), [(1.0, 1), (1.09, 1), (1.11, 16), (2.0, 16)])
def test_requests_in_flight_count_while_they_bring_a_tenth_more(gain: float, expected: int) -> None:
    assert fit_requests(synthetic(1e-4, 1e-5, 1e9, gain)).max_in_flight == expected


def test_requests_in_flight_end_where_the_gain_ends() -> None:
    rates = {1: 100.0, 2: 190.0, 4: 260.0, 8: 270.0, 16: 500.0}
    assert fit_requests([RequestTime(8192, count, False, rate) for count, rate in rates.items()]).max_in_flight == 4


def test_without_requests_at_random_places_nothing_is_fitted() -> None:
    with pytest.raises(InvalidSettingError, match="at random places"):
        fit_requests([RequestTime(8192, 1, True, 100.0), RequestTime(8192, 2, False, 100.0)])


def test_a_request_tells_its_time_and_its_bytes() -> None:
    request = RequestTime(1000, 4, False, 200.0)
    assert request.seconds == 0.02
    assert request.bytes_per_second == 200_000
