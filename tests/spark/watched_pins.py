"""Pins that something is done around, and what tells when a task wants to know a version."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import pytest

from semistream.spark.pinning import PinOnItsWay
from semistream.store.paged.table import PagedTable


def in_pin(monkeypatch: pytest.MonkeyPatch, before: Callable[[], object], after: Callable[[], object]) -> None:
    """Do something before and after each pin."""
    real = PagedTable.pin

    def pin(table: PagedTable, owner: str, batch: int, version: int | None = None) -> int:
        before()
        pinned = real(table, owner, batch, version)
        after()
        return pinned

    monkeypatch.setattr(PagedTable, "pin", pin)


def asked_for_versions(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Return what is set as soon as a task waits for a version that is on its way."""
    asked, real = Event(), PinOnItsWay.found

    def found(pin: PinOnItsWay) -> tuple[int, str]:
        asked.set()
        return real(pin)

    monkeypatch.setattr(PinOnItsWay, "found", found)
    return asked
