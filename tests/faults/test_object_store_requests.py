"""Requests to an object store: how many are under way, and what becomes of answers that are late or lost."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from typing import Any

import numpy as np
import pytest

from semistream.core.arrays import UInt8Array
from semistream.core.errors import StoreUnavailableError
from semistream.store.places import object_client
from semistream.store.places.choice import place_of
from semistream.store.places.object_ranges import ObjectRanges
from semistream.store.places.object_store import ObjectStore
from semistream.store.places.place import MAX_SPAN_BYTES, Traffic
from servers.proxy import Proxy
from servers.s3 import S3Server


class ManyAtOnce:
    """Answers no call before so many are under way, and notes how many bytes were asked for at a time."""

    def __init__(self, calls: int) -> None:
        self._together = threading.Barrier(calls)
        self._counting = threading.Lock()
        self.bytes_asked = self.most_bytes = 0

    def get_ranges(self, key: str, shown: str, starts: Sequence[int], ends: Sequence[int]) -> list[bytes]:
        assert key == shown == "data"
        asked = sum(ends) - sum(starts)
        with self._counting:
            self.bytes_asked += asked
            self.most_bytes = max(self.most_bytes, self.bytes_asked)
        self._together.wait(10)
        with self._counting:
            self.bytes_asked -= asked
        return [bytes(end - start) for start, end in zip(starts, ends, strict=True)]


def brought(client: Any, size_bytes: int, count: int) -> int:
    """Bring stretches far apart, and return how many came in full."""
    came: list[int] = []

    def take(_: int, contents: Sequence[UInt8Array]) -> None:
        came.extend(len(content) == size_bytes for content in contents)

    starts = np.arange(count, dtype=np.int64) * 10 * MAX_SPAN_BYTES
    ObjectRanges(client, f"s3://x/{size_bytes}", Traffic()).bring("data", "data", starts, starts + size_bytes, take)
    return sum(came)


@pytest.mark.parametrize(("size_bytes", "count", "calls"), [(4096, 160, 8), (65_536, 128, 8), (MAX_SPAN_BYTES, 8, 4)])
def test_as_many_requests_are_under_way_as_their_bytes_allow(size_bytes: int, count: int, calls: int) -> None:
    client = ManyAtOnce(calls)
    assert brought(client, size_bytes, count) == count
    assert client.most_bytes <= ObjectRanges.transit_bytes


@pytest.fixture
def place(s3: S3Server) -> ObjectStore:
    place = place_of(s3.address())
    assert isinstance(place, ObjectStore)
    return place


def test_an_object_that_goes_together_with_its_mark_while_it_is_asked_for_is_gone(
    place: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.put_new("manifest", b"content")
    lease, is_condemned = place.lease("manifest"), place.is_condemned

    def late(name: str) -> bool:
        time.sleep(0.2)  # so that the object was asked for and found
        place.remove("manifest")
        time.sleep(0.2)
        return is_condemned(name)

    assert lease.still_there()
    monkeypatch.setattr(place, "is_condemned", late)
    assert not lease.still_there()


def test_a_mark_outlives_what_was_removed_under_it(place: ObjectStore) -> None:
    place.put_new("manifest", b"content")
    lease = place.lease("manifest")
    mark = place.taken_alone("manifest")
    assert mark is not None
    place.remove("manifest")
    began = time.monotonic()
    mark.release()
    mark.release()
    assert 0.5 < time.monotonic() - began < 3, "longer than two requests that count as one moment may be apart"
    assert not place.is_condemned("manifest")
    assert not lease.still_there()


def test_a_mark_under_which_nothing_was_removed_goes_at_once(place: ObjectStore) -> None:
    place.put_new("manifest", b"content")
    mark = place.taken_alone("manifest")
    assert mark is not None
    began = time.monotonic()
    mark.release()
    assert time.monotonic() - began < 0.5
    assert place.lease("manifest").still_there()


@pytest.mark.parametrize("arrives", [True, False])
def test_an_upload_whose_last_answer_is_lost_is_settled_by_looking(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    lost: list[str] = []

    def lose(method: str, path: str) -> bool:
        is_end = method == "POST" and "uploadId=" in path and not lost
        if is_end:
            lost.append(path)
            if not arrives:
                server = HTTPConnection("127.0.0.1", s3.port)
                server.request("DELETE", path.partition("?")[0])
                assert server.getresponse().status == 204
        return is_end

    address, content = s3.address(), os.urandom((8 << 20) + 1)
    with Proxy(s3.port, lose_answer=lose) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
        object_client._opened.cache_clear()
        new = place_of(address).new_object("data")
        new.write(content)
        if arrives:
            new.finish()
        else:
            with pytest.raises(StoreUnavailableError, match=r"has lost what was sent for .*data: check that nobody"):
                new.finish()
        found = place_of(address).status("data")
    object_client._opened.cache_clear()
    assert len(lost) == 1
    assert (found.size_bytes if found is not None else 0) == (len(content) if arrives else 0)
    new.close()
