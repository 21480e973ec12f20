"""What the example says on the screen while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proof import Proof
    from shop import Customers, Shop
    from warehouse import Statistics, Warehouse

_SECONDS_BETWEEN_LINES = 5.0
_COLUMNS = (
    ("time", 6),
    ("sent", 10),
    ("warehouse", 11),
    ("parked", 8),
    ("mirror", 8),
    ("changed", 9),
    ("batch", 8),
    ("cached", 8),
)


class Screen:
    """Prints lines: headings, steps with how long they took, events, and a row of numbers every few seconds."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._next = 0.0
        self._has_columns = False

    def heading(self, title: str, more: str = "") -> None:
        """Begin a part."""
        print(f"\n{title}{': ' if more else ''}{more}", flush=True)
        self._has_columns = False

    @contextmanager
    def step(self, name: str, what: str) -> Iterator[Callable[[str], None]]:
        """Do something, and say at the end what came of it and how long it took."""
        began, result = time.monotonic(), [""]

        def tell(text: str) -> None:
            result[0] = text

        yield tell
        print(f"  {name:<12}{what:<44}{result[0]:<14}{time.monotonic() - began:6.1f} s", flush=True)

    def event(self, sentence: str) -> None:
        """Say that something has happened."""
        print(f"{self._clock():>6}  {sentence}", flush=True)

    def progress(self, shop: Shop, customers: Customers, warehouse: Warehouse, statistics: Statistics) -> None:
        """Print a row of numbers, unless the last one was a moment ago."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _SECONDS_BETWEEN_LINES
        if not self._has_columns:
            print("".join(f"{name:>{width}}" for name, width in _COLUMNS), flush=True)
            self._has_columns = True
        version, seconds = statistics.first("mirror_version"), statistics.first("batch_seconds")
        hits, rows = statistics.sum("cache_hits"), statistics.sum("tuples_out")
        cells = (
            self._clock(),
            f"{shop.sent.count:,}",
            f"{warehouse.rows:,}",
            f"{statistics.sum('parked'):,}",
            "-" if version is None else f"v{version}",
            f"{customers.changes:,}",
            "-" if seconds is None else f"{seconds:.1f} s",
            "-" if not rows else f"{100 * hits / rows:.0f}%",
        )
        print("".join(f"{cell:>{width}}" for cell, (_, width) in zip(cells, _COLUMNS, strict=True)), flush=True)

    def proved(self, proof: Proof) -> None:
        """Say what was proved."""
        written = proof.orders - proof.parked
        for line in (
            f"{proof.orders:,} orders were sent. {written:,} are in the warehouse, each exactly once;",
            f"{proof.parked:,} are parked, because their customers never came. None is lost.",
            "Products, prices and totals are those of a batch join.",
            f"Customers are those of the version to which each micro-batch is pinned: {proof.pinned:,} orders,",
            f"{proof.versions:,} versions, each equal to the database after one of its transactions.",
        ):
            print(f"  {line}")
        print("Proved.", flush=True)

    def _clock(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        return f"{minutes}:{seconds:02}"
