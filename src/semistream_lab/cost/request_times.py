"""How long requests to a store take, by their size and by how many are under way at one time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.core.errors import InvalidSettingError
from semistream.store.contract import MasterStore

SIZES_BYTES = (8 << 10, 32 << 10, 128 << 10, 512 << 10, 1 << 20, 4 << 20)
IN_FLIGHT = (1, 2, 4, 8, 16)
_ROUNDS = 3
_ROUND_SECONDS = 0.05
_LARGEST_PART = 4
"""A request brings at most this part of the table, or requests would not be at random places."""
_PLACES = 4096

Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class RequestTime:
    """What was measured of requests of one kind: c_IO."""

    size_bytes: int
    """The bytes of a request, on average."""
    in_flight: int
    sequential: bool
    """Each request continues where the one before ended; otherwise they are at random places."""
    requests_per_second: float
    """Of all that are under way together."""

    @property
    def seconds(self) -> float:
        """How long one request is under way."""
        return self.in_flight / self.requests_per_second

    @property
    def bytes_per_second(self) -> float:
        """The bytes of all requests together."""
        return self.size_bytes * self.requests_per_second


def measure_requests(
    store: MasterStore,
    *,
    sizes_bytes: Sequence[int] = SIZES_BYTES,
    in_flight: Sequence[int] = IN_FLIGHT,
    rounds: int = _ROUNDS,
    round_seconds: float = _ROUND_SECONDS,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[RequestTime]:
    """Read the store by requests of each size, at random places and in sequence, and return the medians of rounds.

    What is timed is `store.read`, as joins call it: the request, the checksums and the codes. Requests in flight come
    from as many threads. Sizes above a quarter of the table are cut to that. All kinds of request are measured in each
    round, so that a disturbance of the machine does not fall on one of them alone.
    """
    kinds = _kinds(store, sizes_bytes, in_flight)
    random = np.random.default_rng(seed)
    total = rounds * len(kinds)
    with ThreadPoolExecutor(max(in_flight), "semistream-calibrate") as pool:
        for number in range(total):
            if progress is not None:
                progress("Measuring reads", number, total)
            kind = kinds[number % len(kinds)]
            kind.rates.append(_rate(store, kind, pool, random, round_seconds))
    return [RequestTime(kind.size_bytes, kind.in_flight, kind.sequential, median(kind.rates)) for kind in kinds]


@dataclass
class _Kind:
    """Requests of one size, and the rates of the rounds so far."""

    pages: int
    size_bytes: int
    in_flight: int
    sequential: bool
    rates: list[float] = field(default_factory=list)


def _kinds(store: MasterStore, sizes_bytes: Sequence[int], in_flight: Sequence[int]) -> list[_Kind]:
    if not store.page_count:
        raise InvalidSettingError("A master table without rows has nothing to read: give one that has rows.")
    table_bytes = store.size_bytes
    page_bytes = table_bytes / store.page_count
    kinds: dict[tuple[int, int, bool], _Kind] = {}
    for size in sizes_bytes:
        pages = max(1, min(round(size / page_bytes), store.page_count // _LARGEST_PART))
        for count, sequential in [(1, True), *((count, False) for count in in_flight)]:
            kinds.setdefault((pages, count, sequential), _Kind(pages, round(pages * page_bytes), count, sequential))
    return list(kinds.values())


def _rate(
    store: MasterStore, kind: _Kind, pool: ThreadPoolExecutor, random: np.random.Generator, round_seconds: float
) -> float:
    """Return the requests that are answered in a second."""
    places = [_places(store, kind, random) for _ in range(kind.in_flight)]
    began = time.perf_counter()
    ends = began + round_seconds
    readers = [pool.submit(_read_until, store, kind.pages, places_of_one, ends) for places_of_one in places]
    answered = sum(reader.result() for reader in readers)
    return answered / (time.perf_counter() - began)


def _places(store: MasterStore, kind: _Kind, random: np.random.Generator) -> Int64Array:
    """Return the first page of each request; whoever needs more of them begins again."""
    last = max(0, store.page_count - kind.pages)
    if not kind.sequential:
        return random.integers(0, last + 1, _PLACES)
    start = int(random.integers(0, last // 2 + 1))
    return np.arange(start, last + 1, kind.pages, dtype=np.int64)


def _read_until(store: MasterStore, pages: int, places: Int64Array, ends: float) -> int:
    """Make one request after the other until the time is over, at least one, and return how many."""
    done = 0
    while True:
        place = done % len(places)
        first = places[place : place + 1]
        store.read(first, first + (pages - 1))
        done += 1
        if time.perf_counter() >= ends:
            return done
