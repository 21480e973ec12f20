"""Stretches of objects in an object store: near ones by one request, and requests side by side."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from threading import Condition, Lock

import numpy as np

from semistream.core.arrays import Int64Array, UInt8Array
from semistream.core.errors import CorruptTableError
from semistream.core.measured_costs import MeasuredCosts
from semistream.core.side_by_side import all_at_once
from semistream.store.places.object_client import ObjectClient
from semistream.store.places.place import TakeSpans, Traffic

REQUEST_SECONDS, BYTES_PER_SECOND = 0.02, 200e6
"""What is assumed of a store until requests have been measured: latency and bandwidth."""
_CALLS, _CALL_REQUESTS = 8, 10
"""So many calls of the library bring stretches at a time; each sends so many requests at once, and returns when all of
them are answered, so that a call with more would send the others late."""
IN_FLIGHT = _CALLS * _CALL_REQUESTS
_TRANSIT_BYTES = 4 << 20
"""What may be on its way at a time: about as many bytes as such a store sends within its latency."""
_CALL_BYTES = _TRANSIT_BYTES // _CALLS
_MEASURED_REQUESTS = 2 * IN_FLIGHT
"""Fewer requests are under way all at once, and say little about what one more costs."""
_PIECE_BYTES, _BLOCK_BYTES = 1 << 18, 3 << 18
"""One request brings at most a piece more than a block."""


class ObjectRanges:
    """Reads stretches of the objects at an address; may be used from several threads."""

    transit_bytes = _TRANSIT_BYTES

    def __init__(self, client: ObjectClient, address: str, traffic: Traffic) -> None:
        self._client = client
        self._traffic = traffic
        self._transit = _Room(_TRANSIT_BYTES)
        self._counting = Lock()
        self._costs = _costs_of(address)

    def read(self, key: str, shown: str, extents: Int64Array, memory: UInt8Array) -> None:
        """Get stretches, each (offset, length, position in `memory`), and copy them to their places."""
        pieces = _in_pieces(extents)
        pieces = pieces[np.argsort(pieces[:, 0], kind="stable")]
        starts, ends, first = _spans(pieces, self.gap_bytes)

        def take(number: int, contents: Sequence[UInt8Array]) -> None:
            for span, found in enumerate(contents, number):
                base = int(starts[span])
                for offset, length, position in pieces[first[span] : first[span + 1]].tolist():
                    memory[position : position + length] = found[offset - base : offset - base + length]

        self.bring(key, shown, starts, ends, take)

    def bring(self, key: str, shown: str, starts: Int64Array, ends: Int64Array, take: TakeSpans) -> None:
        """Get stretches by a few calls at a time, each of some stretches, and hand them over as they come."""
        sizes = ends - starts
        bounds = _call_bounds(sizes)
        groups = iter(list(pairwise(bounds)))
        failed = False

        def work() -> None:
            nonlocal failed
            try:
                for begin, end in groups:
                    if failed:
                        return
                    with self._transit.taken(int(sizes[begin:end].sum())):
                        take(begin, self._brought(key, shown, starts[begin:end], ends[begin:end]))
            except BaseException:
                failed = True
                raise

        began = time.perf_counter()
        all_at_once([work] * min(_CALLS, len(bounds) - 1))
        self._count(len(starts), int(sizes.sum()), time.perf_counter() - began)

    @property
    def gap_bytes(self) -> int:
        """The recent cost of a request, in bytes that could have been transferred in the same time."""
        request_seconds, byte_seconds = self._costs.costs
        return int(request_seconds / byte_seconds)

    def _brought(self, key: str, shown: str, starts: Int64Array, ends: Int64Array) -> list[UInt8Array]:
        brought = self._client.get_ranges(key, shown, starts.tolist(), ends.tolist())
        contents = [np.frombuffer(content, dtype=np.uint8) for content in brought]
        for start, end, content in zip(starts.tolist(), ends.tolist(), contents, strict=True):
            if len(content) != end - start:
                raise CorruptTableError(
                    f"{shown} is truncated: expected {end - start} bytes from {start} on, found {len(content)}."
                )
        return contents

    def _count(self, requests: int, size_bytes: int, seconds: float) -> None:
        with self._counting:
            self._traffic.remote_requests += requests
            self._traffic.remote_bytes += size_bytes
            if requests >= _MEASURED_REQUESTS:
                self._costs.observe(requests, size_bytes, seconds)


def _in_pieces(extents: Int64Array) -> Int64Array:
    """Part long stretches, so that what is under way is bounded."""
    if not len(extents) or int(extents[:, 1].max()) <= _PIECE_BYTES:
        return extents
    pieces = [
        (offset + done, min(_PIECE_BYTES, length - done), position + done)
        for offset, length, position in extents.tolist()
        for done in range(0, length, _PIECE_BYTES)
    ]
    return np.array(pieces, dtype=np.int64)


def _call_bounds(sizes: Int64Array) -> list[int]:
    """Part stretches into calls of the library, a long one into a call of its own: where each starts, and the end."""
    bounds, total = [0], 0
    for index, size in enumerate(sizes.tolist()):
        if index > bounds[-1] and (total + size > _CALL_BYTES or index - bounds[-1] == _CALL_REQUESTS):
            bounds.append(index)
            total = 0
        total += size
    return [*bounds, len(sizes)] if len(sizes) else [0]


class _Room:
    """Bytes that may be taken together; who wants more than are free waits."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = self._free_bytes = size_bytes
        self._changed = Condition()

    @contextmanager
    def taken(self, size_bytes: int) -> Iterator[None]:
        """Hold so many bytes, or all of them if there are never so many."""
        wanted = min(size_bytes, self._size_bytes)
        with self._changed:
            self._changed.wait_for(lambda: self._free_bytes >= wanted)
            self._free_bytes -= wanted
        try:
            yield
        finally:
            with self._changed:
                self._free_bytes += wanted
                self._changed.notify_all()


@lru_cache(maxsize=64)
def _costs_of(address: str) -> MeasuredCosts:  # noqa: ARG001 - each has its own
    """Return what a request and a byte cost at an address, as this process has measured it."""
    return MeasuredCosts((REQUEST_SECONDS / IN_FLIGHT, 1 / BYTES_PER_SECOND))


def _spans(pieces: Int64Array, gap_bytes: int) -> tuple[Int64Array, Int64Array, list[int]]:
    """Join sorted pieces whose gaps are small: start and end of each span, and the number of its first piece."""
    if not len(pieces):
        none = np.zeros(0, dtype=np.int64)
        return none, none, [0]
    offsets = pieces[:, 0]
    reach = np.maximum.accumulate(offsets + pieces[:, 1])
    apart = (offsets[1:] - reach[:-1] > gap_bytes) | (offsets[1:] // _BLOCK_BYTES != offsets[:-1] // _BLOCK_BYTES)
    first = np.concatenate(([0], np.flatnonzero(apart) + 1, [len(pieces)]))
    ends = np.maximum.reduceat(offsets + pieces[:, 1], first[:-1])
    return offsets[first[:-1]], ends, first.tolist()
