"""Direct reads that the system does by itself."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from semistream.core.errors import CorruptTableError, SemistreamError
from semistream.engine.reading import loaders
from semistream.engine.reading.loaders import BegunLoad
from semistream.master_table import MasterTable
from semistream.store.contract import MasterStore
from semistream.store.paged.read import system_reads
from semistream.store.paged.read.system_reads import MAX_EXTENTS, SystemReads

ROWS = 20_000


def _takes_direct_reads(folder: Path) -> bool:
    """Ask the system, not what is tested, whether the file system reads past the page cache."""
    path = folder / "probe"
    path.write_bytes(bytes(4096))
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        return False
    try:
        return os.preadv(descriptor, [mmap.mmap(-1, 4096)], 0) == 4096
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _has_asynchronous_reads() -> bool:
    """Ask the system for a context, not what is tested."""
    setup, destroy = {"x86_64": (206, 207), "aarch64": (0, 1)}.get(platform.machine(), (-1, -1))
    context, system = ctypes.c_ulong(0), ctypes.CDLL(None)
    if setup < 0 or system.syscall(ctypes.c_long(setup), ctypes.c_long(1), ctypes.byref(context)) < 0:
        return False
    system.syscall(ctypes.c_long(destroy), context)
    return True


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MasterStore]:
    if not _takes_direct_reads(tmp_path):
        pytest.skip("the file system refuses direct reads")
    if not _has_asynchronous_reads():
        pytest.skip("this system has no asynchronous reads")
    rows = pa.table({"key": np.arange(ROWS, dtype=np.int64), "name": [f"row {key}" for key in range(ROWS)]})
    with MasterTable.build(rows, tmp_path / "master", "key", page_bytes=1024).open(direct=True) as opened:
        yield opened


def test_several_begun_reads_bring_what_reads_do_in_any_order(store: MasterStore) -> None:
    generator = np.random.default_rng(7)
    for _ in range(20):
        wanted = [np.sort(generator.choice(store.page_count, 6, replace=False)).astype(np.int64) for _ in range(5)]
        prepared = [store.prepared_read(pages, pages) for pages in wanted]
        assert all(one.begin() for one in prepared)
        for index in generator.permutation(len(wanted)).tolist():
            found, expected = prepared[index].read(), store.read(wanted[index], wanted[index])
            assert found.codes.tolist() == expected.codes.tolist()
            rows = np.array([0, len(found.codes) - 1])
            assert found.take(rows, ["name"]).equals(expected.take(rows, ["name"]))


def test_the_last_page_ends_before_the_block_that_is_read(store: MasterStore) -> None:
    last = np.array([store.page_count - 1])
    prepared = store.prepared_read(last, last)
    assert prepared.begin()
    assert prepared.read().codes[-1] == ROWS - 1


def test_a_read_that_nobody_wants_any_more_ends_before_its_memory_is_used_again(store: MasterStore) -> None:
    everything = np.array([0]), np.array([store.page_count - 1])
    expected = store.read(*everything).codes.tolist()
    for _ in range(50):
        store.prepared_read(*everything).begin()  # dropped at once
        assert store.read(*everything).codes.tolist() == expected


def test_reads_under_way_come_to_their_end_when_the_store_is_closed(store: MasterStore) -> None:
    prepared = store.prepared_read(np.array([0]), np.array([store.page_count - 1]))
    assert prepared.begin()
    store.close()
    assert len(prepared.read().codes) == ROWS
    with pytest.raises(SemistreamError, match="closed"):
        store.prepared_read(np.array([0]), np.array([0])).begin()


def test_what_the_system_brings_is_checked_like_any_page(store: MasterStore, tmp_path: Path) -> None:
    (data,) = (tmp_path / "master").glob("data-*")
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(content)
    prepared = store.prepared_read(np.array([0]), np.array([store.page_count - 1]))
    assert prepared.begin()
    with pytest.raises(CorruptTableError, match="damaged"):
        prepared.read()


def test_what_did_not_come_is_read_again(store: MasterStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(self: system_reads.BegunRead) -> np.ndarray:
        waited(self)
        return np.full(len(self._results), -5, dtype=np.int64)  # an input or output error

    waited = system_reads.BegunRead.wait
    monkeypatch.setattr(system_reads.BegunRead, "wait", failed)
    prepared = store.prepared_read(np.array([0]), np.array([3]))
    assert prepared.begin()
    assert prepared.read().codes.tolist() == store.read(np.array([0]), np.array([3])).codes.tolist()


def test_more_extents_than_the_system_takes_at_once_are_left_to_a_thread(store: MasterStore) -> None:
    many = np.arange(0, 2 * MAX_EXTENTS + 2, 2)
    assert not store.prepared_read(many, many).begin()


@pytest.mark.parametrize("refusal", ["no such machine", "no such call"])
def test_without_such_reads_a_thread_reads(monkeypatch: pytest.MonkeyPatch, refusal: str) -> None:
    if refusal == "no such machine":
        monkeypatch.setattr(system_reads, "_CALLS", {})
    else:
        monkeypatch.setattr(SystemReads, "call", lambda *_: -38)
    reads = SystemReads()
    memory = np.zeros(4096, dtype=np.uint8)
    requests = system_reads.requests_for(
        np.array([0], dtype=np.int32), np.array([0]), np.array([0]), np.array([[0, 4096, 0]]), memory
    )
    assert reads.begin(requests, memory) is None


@pytest.mark.parametrize("interrupted", [0, 2, 3])  # io_setup, io_getevents, io_submit
def test_a_signal_that_comes_as_a_call_ends_leaves_nothing_under_way(
    store: MasterStore, monkeypatch: pytest.MonkeyPatch, interrupted: int
) -> None:
    made: list[int] = []

    def interrupting(self: SystemReads, which: int, *arguments: object) -> int:
        made.append(which)
        if made.count(interrupted) > 1 and which == interrupted:
            return -22  # nobody may wait for what has been heard of already
        result = call(self, which, *arguments)
        if which == interrupted:
            raise KeyboardInterrupt
        return result

    call = SystemReads.call
    store._files._system.close()  # type: ignore[attr-defined]
    store._files._system = SystemReads()  # type: ignore[attr-defined]
    monkeypatch.setattr(SystemReads, "call", interrupting)
    prepared = store.prepared_read(np.array([0]), np.array([store.page_count - 1]))
    with pytest.raises(KeyboardInterrupt):
        _ = prepared.begin() and prepared.read()
    assert made[-2:] == [interrupted, 1]  # io_destroy waits for what is under way
    monkeypatch.undo()
    prepared = store.prepared_read(np.array([0]), np.array([store.page_count - 1]))
    assert prepared.begin()
    assert len(prepared.read().codes) == ROWS


def test_what_the_system_does_not_take_is_left_to_a_thread(store: MasterStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(self: SystemReads, which: int, *arguments: object) -> int:
        return -11 if which == 3 else call(self, which, *arguments)

    call = SystemReads.call
    prepared = store.prepared_read(np.array([0]), np.array([3]))
    with monkeypatch.context() as patched:
        patched.setattr(SystemReads, "call", refusing)
        assert not prepared.begin()
    assert len(prepared.read().codes) > 0
    assert store.prepared_read(np.array([0]), np.array([0])).begin()


def test_a_read_may_end_where_the_garbage_collection_drops_it_while_another_begins() -> None:
    reads = SystemReads()

    def collect() -> None:
        with reads._lock:
            reads.give_back(0)

    collecting = threading.Thread(target=collect, daemon=True)
    collecting.start()
    collecting.join(5)
    assert not collecting.is_alive()


def test_an_error_of_a_begun_read_is_for_who_waits_for_it() -> None:
    def fails() -> object:
        raise CorruptTableError("a page is damaged")

    assert isinstance(BegunLoad(fails).outcome(), CorruptTableError)  # type: ignore[arg-type]


def test_a_read_is_timed_only_if_somebody_waited_for_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def pass_seconds(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(loaders.time, "perf_counter", lambda: now)
    waited, there = BegunLoad(lambda: pass_seconds(0.01)), BegunLoad(lambda: None)  # type: ignore[arg-type,return-value]
    pass_seconds(0.005)
    waited.outcome()
    there.outcome()
    assert waited.is_timed
    assert not there.is_timed
    assert waited.ended - waited.began == pytest.approx(0.015)  # from its beginning on


def test_requests_have_the_size_that_the_system_expects() -> None:
    assert system_reads._REQUEST.itemsize == 64
    assert system_reads._EVENT.itemsize == 4 * ctypes.sizeof(ctypes.c_uint64)
