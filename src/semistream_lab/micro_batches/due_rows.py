"""Which waiting rows leave with a micro-batch: two rules that both let none wait longer than `max_wait`."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from semistream.core.arrays import BoolArray
from semistream_lab.micro_batches.waiting_rows import WaitingRows


class DueRows(ABC):
    """Chooses, at the end of each micro-batch, the waiting rows that must leave with it."""

    @abstractmethod
    def choose(self, rows: WaitingRows, began: float) -> BoolArray:
        """Say which rows leave with the micro-batch that began at a moment."""


class Sweep(DueRows):
    """Goes around the table once in `max_wait`, and lets the rows leave that wait for the part whose turn it is.

    The part is as long as the time since the last micro-batch, so that one that comes late makes up for it.
    """

    def __init__(self, max_wait_seconds: float, page_count: int) -> None:
        self._max_wait_seconds = max_wait_seconds
        self._page_count = page_count
        self._swept_until: float | None = None
        self._place = 0.0
        """Where the next part begins, in pages."""

    def choose(self, rows: WaitingRows, began: float) -> BoolArray:
        """Choose the rows of the next part of the table."""
        last = began if self._swept_until is None else self._swept_until
        self._swept_until = began
        length = min(1.0, (began - last) / self._max_wait_seconds) * self._page_count
        distance = (rows.pages - self._place) % self._page_count
        self._place = (self._place + length) % self._page_count
        return distance < length


class Overdue(DueRows):
    """Waits until a row would be late by the next micro-batch; all rows that wait for the same pages go with it.

    Pages are counted in units of some neighbours, which one request brings.
    """

    def __init__(self, max_wait_seconds: float, trigger_seconds: float, unit_pages: int = 1) -> None:
        self._max_wait_seconds = max_wait_seconds
        self._trigger_seconds = trigger_seconds
        self._unit_pages = unit_pages

    def choose(self, rows: WaitingRows, began: float) -> BoolArray:
        """Choose the rows of every unit of pages that a row would be late for."""
        units = rows.pages // self._unit_pages
        is_late = rows.arrivals + self._max_wait_seconds < began + self._trigger_seconds * (1 - 1e-9)
        return np.isin(units, units[is_late])
