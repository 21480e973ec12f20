"""Reads in flight together bring what one read after the other would."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core.clock import ModelClock, WallClock
from semistream.core.costs import SSD
from semistream.core.measured_costs import MeasuredCosts
from semistream.core.stats import JoinStats
from semistream.engine.reading.group_reader import PageGroupReader
from semistream.engine.reading.joined_pages import JoinedPages
from semistream.engine.reading.overlapping_page_groups import OverlappingPageGroups
from semistream.engine.reading.page_groups import PageGroups, Runs
from semistream.engine.reading.read_ahead import ReadAhead
from semistream.store.contract import MasterStore, PageSet, PreparedRead
from semistream.store.memory import MemoryStore
from semistream.store.wrapping import WrappingStore
from semistream.testing import FaultyStore
from semistream.testing.faults import InjectedFaultError

PAGES, ROWS_PER_PAGE = 40, 5
fixed = settings(max_examples=60, deadline=None, derandomize=True, print_blob=True)
some_page_groups = st.sets(st.integers(0, PAGES - 1), min_size=1).map(
    lambda numbers: np.array(sorted(numbers), dtype=np.int64)
)


def table(row_bytes: int = 8) -> MemoryStore:
    keys = np.arange(PAGES * ROWS_PER_PAGE, dtype=np.int64)
    rows = pa.table({"key": keys, "name": [f"row {key}" for key in keys]})
    return MemoryStore(rows, "key", rows_per_page=ROWS_PER_PAGE, row_bytes=row_bytes)


def reader_of(store: MasterStore) -> PageGroupReader:
    return PageGroupReader(store, PageGroups(store, 1), WallClock(), JoinStats())


def runs_of(page_groups: np.ndarray) -> Runs:
    return PageGroups(table(), 1).runs(page_groups)


def assert_same(found: PageSet, expected: PageSet) -> None:
    assert found.codes.tolist() == expected.codes.tolist()
    assert found.bounds.tolist() == expected.bounds.tolist()


@fixed
@given(
    st.lists(some_page_groups, min_size=1, max_size=4),
    st.integers(0, 6),
    st.integers(1, 3),
    st.sampled_from([8, 300_000]),
    st.integers(0, 3),
)
def test_whatever_is_in_flight_the_same_pages_come_in_the_same_order(
    reads: list[np.ndarray], in_flight: int, reads_ahead: int, row_bytes: int, skipped: int
) -> None:
    store = table(row_bytes)  # with large rows a single run is parted, too
    ahead = ReadAhead(reader_of(store), WallClock(), in_flight=in_flight, reads=reads_ahead)
    for place, page_groups in enumerate(reads):
        if place == skipped and place > 0:
            continue  # although it has been read ahead
        pages, starts = ahead.read(page_groups, reads[place + 1 : place + 1 + reads_ahead])
        assert_same(pages, reader_of(store).read_runs(runs_of(page_groups)))
        assert starts.tolist() == runs_of(page_groups).starts.tolist()
    ahead.close()


def test_a_read_that_was_not_expected_is_read_all_the_same() -> None:
    store = table()
    ahead = ReadAhead(reader_of(store), WallClock(), in_flight=3)
    ahead.read(np.array([1, 2, 8]), [np.array([10, 11, 30])])
    expected = reader_of(store).read_runs(runs_of(np.array([20, 35])))
    assert_same(ahead.read(np.array([20, 35]), [np.array([36])])[0], expected)
    ahead.close()


def test_parts_that_begin_between_runs_make_no_more_requests() -> None:
    store = table()
    stats = JoinStats()
    reader = PageGroupReader(store, PageGroups(store, 1), WallClock(), stats)
    ahead = ReadAhead(reader, WallClock(), in_flight=4)
    ahead.read(np.array([1, 2, 3, 8, 9, 20, 22, 23, 39]), [])
    ahead.close()
    assert stats.read_requests == 5


class MeetingStore(WrappingStore):
    """A store whose reads return only when so many of them are under way at one time."""

    def __init__(self, inside: MasterStore, readers: int) -> None:
        super().__init__(inside)
        self._meeting = threading.Barrier(readers, timeout=30)

    def read(self, first_pages: np.ndarray, last_pages: np.ndarray) -> PageSet:
        self._meeting.wait()
        return self.inside.read(first_pages, last_pages)


def test_as_many_requests_are_under_way_as_may_be() -> None:
    ahead = ReadAhead(reader_of(MeetingStore(table(), 4)), WallClock(), in_flight=4)
    pages, _ = ahead.read(np.array([1, 5, 9, 20]), [])
    ahead.close()
    assert len(pages.codes) == 4 * ROWS_PER_PAGE


def test_as_many_reads_are_under_way_as_were_asked_for() -> None:
    ahead = ReadAhead(reader_of(MeetingStore(table(), 3)), WallClock(), in_flight=4, reads=2)
    following = [np.array([5]), np.array([9])]
    pages, _ = ahead.read(np.array([1]), following)  # would wait for the others for good
    assert len(pages.codes) == ROWS_PER_PAGE
    ahead.close()


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_the_error_of_any_part_reaches_the_caller(failing: int) -> None:
    store = FaultyStore(table(), fail_on_read=failing)
    ahead = ReadAhead(reader_of(store), WallClock(), in_flight=3)
    with pytest.raises(InjectedFaultError):
        ahead.read(np.array([1, 5, 9]), [])
    ahead.close()
    assert store.reads == 3


def test_costs_are_learned_from_reads_on_the_wall_clock_alone() -> None:
    for clock, learns in ((WallClock(), True), (ModelClock(SSD), False)):
        costs = MeasuredCosts((1.0, 1.0))
        ahead = ReadAhead(reader_of(table()), clock, in_flight=2, costs=costs)
        ahead.read(np.array([1, 5]), [])
        ahead.close()
        assert (costs.costs != (1.0, 1.0)) is learns


@pytest.mark.parametrize("pages", [1, 3, 7])
@fixed
@given(some_page_groups)
def test_runs_start_where_a_neighbour_is_missing(pages: int, page_groups: np.ndarray) -> None:
    parted = PageGroups(table(), pages)
    page_groups = page_groups[page_groups < parted.count]
    runs = parted.runs(page_groups)
    starts = np.flatnonzero(np.diff(page_groups, prepend=-2) > 1)
    assert runs.starts.tolist() == starts.tolist()
    first, last = parted.pages_of(page_groups)
    assert runs.first_pages.tolist() == first[starts].tolist()
    assert runs.last_pages.tolist() == last[np.append(starts[1:], len(page_groups))[: len(starts)] - 1].tolist()
    assert runs.page_count == int((last - first + 1).sum())


def test_what_is_read_after_the_end_still_comes() -> None:
    ahead = ReadAhead(reader_of(table()), WallClock(), in_flight=3)
    ahead.read(np.array([1]), [np.array([3])])
    ahead.close()
    pages, _ = ahead.read(np.array([7]), [np.array([9])])
    assert len(pages.codes) == ROWS_PER_PAGE


def test_a_reader_that_is_forgotten_ends_its_threads() -> None:
    before = threading.active_count()
    ahead = ReadAhead(reader_of(table()), WallClock(), in_flight=3)
    ahead.read(np.array([1]), [np.array([3])])
    assert threading.active_count() > before
    del ahead
    for _ in range(200):
        if threading.active_count() == before:
            return
        time.sleep(0.01)
    raise AssertionError("threads are left")


def test_several_buffers_are_loaded_at_the_same_time() -> None:
    ahead = ReadAhead(reader_of(MeetingStore(table(), 2)), WallClock(), buffers=2)
    assert ahead.first_loaded() is None
    for buffer, page_group in zip(ahead.free_buffers(), (3, 8), strict=True):
        ahead.load(buffer, np.array([page_group]))
    assert (ahead.free_buffers(), ahead.loading()) == ([], (3, 8))
    found = [ahead.first_loaded() for _ in range(2)]
    ahead.close()
    assert sorted((int(page_group[0]), int(pages.codes[0])) for page_group, pages in found) == [(3, 15), (8, 40)]
    assert ahead.free_buffers() == [0, 1]


class StuckStore(WrappingStore):
    """A store that reads one page only when it is let go."""

    def __init__(self, inside: MasterStore, page: int) -> None:
        super().__init__(inside)
        self._page = page
        self.go = threading.Event()

    def read(self, first_pages: np.ndarray, last_pages: np.ndarray) -> PageSet:
        if self._page in first_pages:
            assert self.go.wait(30)
        return self.inside.read(first_pages, last_pages)


def test_the_buffer_that_is_loaded_first_comes_first() -> None:
    store = StuckStore(table(), 3)
    ahead = ReadAhead(reader_of(store), WallClock(), buffers=2)
    ahead.load(0, np.array([3]))
    ahead.load(1, np.array([8]))
    assert ahead.first_loaded()[0].tolist() == [8]
    assert ahead.loading() == (3,)
    store.go.set()
    assert ahead.first_loaded()[0].tolist() == [3]
    ahead.close()


def test_a_read_that_hangs_does_not_keep_who_has_set_a_limit() -> None:
    store = StuckStore(table(), 3)
    ahead = ReadAhead(reader_of(store), WallClock(), buffers=2)
    ahead.load(0, np.array([3]))
    ahead.close(0.01)
    assert ahead.is_loading
    store.go.set()


class StuckBegunRead:
    """A read that the store has begun by itself, and that ends only when it may."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def __call__(self) -> PageSet:
        raise AssertionError("nobody asks for it")

    def __del__(self) -> None:
        self.go.wait(3)


def test_a_begun_read_that_hangs_does_not_keep_who_has_set_a_limit() -> None:
    class BeginningStore(WrappingStore):
        def prepared_read(self, first_pages: np.ndarray, last_pages: np.ndarray) -> PreparedRead:
            if 3 not in first_pages:
                return super().prepared_read(first_pages, last_pages)
            stuck = StuckBegunRead()
            may_go.append(stuck.go)
            return PreparedRead(1, stuck, lambda: True)

    may_go: list[threading.Event] = []
    ahead = ReadAhead(reader_of(BeginningStore(table())), WallClock())
    ahead.read(np.array([1]), [np.array([3])])
    began = time.monotonic()
    ahead.close(0.01)
    assert time.monotonic() - began < 2
    may_go[0].set()


def test_the_error_of_a_load_reaches_the_caller_and_frees_the_buffer() -> None:
    ahead = ReadAhead(reader_of(FaultyStore(table(), fail_on_read=1)), WallClock(), buffers=2)
    ahead.load(0, np.array([1]))
    with pytest.raises(InjectedFaultError):
        ahead.first_loaded()
    assert not ahead.is_loading
    ahead.close()


def test_what_shares_pages_with_a_load_counts_as_loading() -> None:
    store = table()
    page_groups = OverlappingPageGroups(store, 3)
    ahead = ReadAhead(PageGroupReader(store, page_groups, WallClock(), JoinStats()), WallClock(), buffers=2)
    ahead.load(0, np.array([4]))
    assert ahead.loading() == (2, 3, 4, 5, 6)
    page_group, pages = ahead.first_loaded()
    assert (page_group.tolist(), pages.codes.tolist()) == ([4], list(range(20, 35)))
    assert ahead.loading() == ()
    ahead.close()


@pytest.mark.parametrize("probe_seconds", [1e-6, 1.0])
def test_on_the_model_clock_buffers_have_turns_and_the_longer_of_load_and_join_passes(probe_seconds: float) -> None:
    clock, store = ModelClock(SSD), table()
    ahead = ReadAhead(PageGroupReader(store, PageGroups(store, 1), clock, JoinStats()), clock, buffers=2)
    load_seconds = SSD.seek_seconds / 2 + store.range_bytes(3, 3) / SSD.bytes_per_second
    turns = []
    for round_number in range(1, 5):
        turns += ahead.free_buffers()
        ahead.load(turns[-1], np.array([3]))
        assert ahead.first_loaded()[1].codes.tolist() == [15, 16, 17, 18, 19]
        clock.advance(probe_seconds)
        ahead.end_join()
        assert clock.now() == pytest.approx(round_number * max(load_seconds, probe_seconds))
    assert turns == [0, 1, 0, 1]


@fixed
@given(some_page_groups, st.lists(st.integers(0, 10**6), max_size=30), st.data())
def test_joined_pages_give_the_rows_of_one_read(page_groups: np.ndarray, picks: list[int], data: st.DataObject) -> None:
    reader = reader_of(table())
    cuts = sorted(data.draw(st.sets(st.integers(1, len(page_groups) - 1)))) if len(page_groups) > 1 else []
    pieces = np.split(page_groups, cuts)
    goes_on = [False] + [bool(after[0] == before[-1] + 1) for before, after in pairwise(pieces)]
    joined = JoinedPages([reader.read_runs(runs_of(piece)) for piece in pieces], goes_on)
    whole = reader.read_runs(runs_of(page_groups))
    assert_same(joined, whole)
    rows = np.array([pick % len(whole.codes) for pick in picks], dtype=np.int64)
    assert joined.take(rows, ["name", "key"]).to_pylist() == whole.take(rows, ["name", "key"]).to_pylist()
    assert joined.size_bytes >= whole.codes.nbytes
