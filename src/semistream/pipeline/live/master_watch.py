"""Looks at the master tables of a pipeline now and then: version, age, rows and pins."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from semistream.master_table import MasterTable
from semistream.store.address import DATABASES

_SECONDS_BETWEEN_LOOKS = 30.0
_SECONDS_TO_STOP = 1.0


@dataclass(frozen=True)
class MasterFacts:
    """What is known of a master table; None where its store does not tell, or has not been asked yet."""

    name: str
    address: str
    """Where it is, which the page does not tell."""
    version: int | None = None
    created: float | None = None
    """When the newest version was made, in seconds since 1970."""
    rows: int | None = None
    pins: int | None = None
    oldest_pin_seconds: float | None = None
    is_reachable: bool = True
    """Whether the last look at it succeeded."""


class MasterWatch:
    """Looks at tables in a thread of its own, because a store may be slow or away; what it saw last is told at once."""

    def __init__(self, tables: Sequence[MasterTable], every_seconds: float = _SECONDS_BETWEEN_LOOKS) -> None:
        self._tables = tables
        self._every_seconds = every_seconds
        self._facts = [MasterFacts(table.address.name, table.address.text) for table in tables]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="semistream-masters", daemon=True)

    def start(self) -> None:
        """Begin with a look at once."""
        self._thread.start()

    def stop(self) -> None:
        """End; a look that hangs is left to itself."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_SECONDS_TO_STOP)

    def facts(self) -> Sequence[MasterFacts]:
        """Return what is known of each table."""
        return list(self._facts)

    def look(self) -> None:
        """Look at each table once."""
        for number, table in enumerate(self._tables):
            if table.address.scheme in DATABASES:
                continue  # which tell neither versions nor pins
            try:
                self._facts[number] = facts_of(table)
            except Exception:  # whatever it is, tasks that need the table will say so
                self._facts[number] = replace(self._facts[number], is_reachable=False)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.look()
            self._stop.wait(self._every_seconds)


def facts_of(table: MasterTable) -> MasterFacts:
    """Return the facts that a table tells about itself."""
    about = table.info()
    created, pins = about.get("created"), about.get("pins")
    ages = [float(pin["age_seconds"]) for pin in pins or ()]
    return MasterFacts(
        table.address.name,
        table.address.text,
        version=about.get("version"),
        created=datetime.fromisoformat(created).timestamp() if created else None,
        rows=about.get("rows"),
        pins=None if pins is None else len(ages),
        oldest_pin_seconds=max(ages, default=None),
    )


def age_seconds(facts: MasterFacts, now: float | None = None) -> float | None:
    """Return how old the newest version is."""
    if facts.created is None:
        return None
    return max(0.0, (time.time() if now is None else now) - facts.created)
