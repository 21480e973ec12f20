"""A stored table that is not a paged one."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from semistream.store.contract import MasterStore, StoredTable
from semistream.store.memory import MemoryStore


class TableWithoutSnapshots(StoredTable):
    """A table of which only the current rows are known, as a database has them; does what the contract does."""

    def __init__(self, rows: pa.Table, key: str) -> None:
        self._key = key
        self._version = 0
        self.replace(rows)

    def replace(self, rows: pa.Table) -> None:
        """Let the table have these rows from now on."""
        self.rows = rows
        self._version += 1
        self._current = MemoryStore(rows, self._key)
        self._current.version = self._version
        self._current.capabilities = replace(self._current.capabilities, snapshot=False)

    def current_version(self) -> int:
        """Return the number of replacements."""
        return self._version

    def open(self, version: int | None = None, *, direct: bool = False) -> MasterStore:
        """Return the only store there is."""
        assert version in (None, self._version), "there are no others"
        assert not direct
        return self._current
