"""Mirrors in an object store: rows and position are one commit there too."""

from __future__ import annotations

import random
import threading

import pytest
from changing_source import ChangingSource
from stored_rows import stored_rows

import semistream as ss
from semistream.core.errors import ConcurrentWriteError
from servers.s3 import S3Server


def _content(table: ss.MasterTable, version: int | None = None) -> dict[int, str]:
    rows = stored_rows(table, version)
    return dict(zip(rows["k"].to_pylist(), rows["v"].to_pylist(), strict=True))


@pytest.fixture
def source() -> ChangingSource:
    made = ChangingSource("in S3")
    for key in range(500):
        made.put(key, f"first {key}")
    return made


def test_after_each_refresh_a_mirror_in_s3_equals_its_source(s3: S3Server, source: ChangingSource) -> None:
    mirror = ss.MasterTable.build(source, s3.address("mirror"), key="k", page_bytes=512)
    chance = random.Random(2)
    expected = {1: dict(source.rows)}
    for number in range(2, 6):
        for _ in range(20):
            source.put(chance.randrange(520), None if chance.random() < 0.3 else f"at {number}")
        done = mirror.refresh()
        assert (done.version, done.position) == (number, {"log": len(source.log)})
        expected[number] = dict(source.rows)
        assert not mirror.refresh().changed
    for version, rows in expected.items():
        assert _content(mirror, version) == rows
    mirror.compact()
    mirror.verify()
    source.put(1, "after a compaction")
    assert mirror.refresh().rows_upserted == 1
    assert _content(mirror) == source.rows


def test_of_refreshes_at_the_same_time_none_is_applied_twice(s3: S3Server, source: ChangingSource) -> None:
    mirror = ss.MasterTable.build(source, s3.address("mirror"), key="k", page_bytes=512)
    for key in range(0, 500, 5):
        source.put(key, "second")
    upserted: list[int] = []
    begin = threading.Barrier(3)

    def refresh() -> None:
        begin.wait()
        try:
            upserted.append(ss.MasterTable(str(mirror.address)).refresh().rows_upserted)
        except ConcurrentWriteError:
            upserted.append(0)

    threads = [threading.Thread(target=refresh) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(upserted) == [0, 0, 100]
    assert mirror.version == 2
    assert _content(mirror) == source.rows
