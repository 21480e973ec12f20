"""How tasks find the version of the master table, and what they may do before it is certain."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Thread

import pyarrow as pa
from pyspark import TaskContext

from semistream.store.contract import MasterStore, StoredTable

_REMEMBERED_BYTES = 4_000_000
"""So much input is taken at most before the version must be certain."""


@dataclass(frozen=True)
class Pin:
    """How tasks find the version of the master table: by the ids of the micro-batch, a name given, or not at all."""

    version: int | None = None
    """The version as of the plan, for a DataFrame that is no stream."""
    owner: str | None = None
    batch: int | None = None
    wanted: bool = True

    def resolve(self, table: StoredTable) -> tuple[int, str, int]:
        """Return the version to read, the id of the query and the number of the batch."""
        owner, batch = self.owner_and_batch()
        if owner and self.wanted:
            return table.pin(owner, batch, self.version), owner, batch
        if self.version is not None:
            return self.version, owner, batch
        if self.wanted:
            warnings.warn(
                "Spark gives no id of the micro-batch here, so the newest version of the master table is read: "
                "pass pin=(name, batch_id) to enrich so that a replay gives the same rows.",
                stacklevel=2,
            )
        return table.current_version(), owner, batch

    def owner_and_batch(self) -> tuple[str, int]:
        """Return the id of the query and the number of the batch, or an empty text and -1."""
        if self.owner is not None and self.batch is not None:
            return self.owner, self.batch
        return micro_batch()

    def takes_long(self, table: StoredTable) -> bool:
        """Say whether it is worth beginning with the rows before the version is certain."""
        return self.wanted and table.pins_take_long and bool(self.owner_and_batch()[0])


class PinOnItsWay:
    """A version that is being found out in a thread, and opened there if `opens` says so."""

    def __init__(self, pin: Pin, table: StoredTable, *, opens: bool) -> None:
        owner, batch = pin.owner_and_batch()
        self._pin = Pin(pin.version, owner, batch)
        self._table = table
        self._found: tuple[int, str] | None = None
        self._error: BaseException | None = None
        self._opens = opens
        self.opened: MasterStore | None = None
        self._thread = Thread(target=self._find, name="semistream-pin", daemon=True)
        self._thread.start()

    def found(self) -> tuple[int, str]:
        """Wait for the version and its identity, or raise what has prevented it."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._found is not None
        return self._found

    def _find(self) -> None:
        try:
            version, _, _ = self._pin.resolve(self._table)
            self._found = version, self._table.identity(version)
            if self._opens:
                self.opened = self._table.open(version)
        except BaseException as error:
            self._error = error


class OtherVersionError(Exception):
    """The version that rows were looked up in is not that of the micro-batch; never leaves a task."""


class RememberedInput(Iterator[pa.RecordBatch]):
    """Input that can be taken once more from its beginning, until what is done with it is certain."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._taken: list[pa.RecordBatch] = []
        self._taken_bytes = 0
        self._again: Iterator[pa.RecordBatch] = iter(())
        self._make_certain: Callable[[], object] | None = None
        self._max_bytes = 0

    def __next__(self) -> pa.RecordBatch:
        for batch in self._again:
            return batch
        if self._make_certain is not None and self._taken_bytes >= self._max_bytes:
            self._make_certain()
        batch = next(self._batches)
        if self._make_certain is not None:
            self._taken.append(batch)
            self._taken_bytes += batch.nbytes
        return batch

    def remember(self, max_bytes: int, make_certain: Callable[[], object]) -> None:
        """Remember what is taken from now on; before it becomes more than so many bytes, make certain and forget it."""
        self._max_bytes, self._make_certain = min(max_bytes, _REMEMBERED_BYTES), make_certain

    def forget(self) -> None:
        """Remember nothing from now on."""
        self._make_certain = None
        self._taken = []

    def from_the_beginning(self) -> None:
        """Give what was remembered once more, and remember nothing from now on."""
        self._again = iter(self._taken)
        self.forget()


def micro_batch() -> tuple[str, int]:
    """Return the id of the streaming query and the number of its micro-batch, or an empty text and -1."""
    context = TaskContext.get()
    if context is None:
        return "", -1
    owner = context.getLocalProperty("sql.streaming.queryId")
    batch = context.getLocalProperty("streaming.sql.batchId")
    return (owner, int(batch)) if owner and batch else ("", -1)
