"""What every stored table must do; a new kind of table adopts it by a subclass that says how one is made."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from store_contract import products, read_all, rows_of

from semistream.store.contract import StoredTable
from semistream.store.saved_rows import NewRows


class TableContract(ABC):
    """The obligations of `StoredTable`."""

    @abstractmethod
    def make(self, rows: pa.Table, key: str) -> StoredTable:
        """Return a table of these rows."""

    @abstractmethod
    def change(self, table: StoredTable, rows: pa.Table) -> None:
        """Put these rows in the place of those with their keys."""

    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path) -> None:
        self.directory = tmp_path

    @pytest.fixture
    def table(self) -> StoredTable:
        return self.make(products(500), "id")

    def test_the_current_version_is_opened_unless_one_is_named(self, table: StoredTable) -> None:
        current = table.current_version()
        for version in (None, current):
            with table.open(version) as store:
                assert (store.version, store.row_count) == (current, 500)

    def test_a_change_makes_a_version_with_a_higher_number_and_another_identity(self, table: StoredTable) -> None:
        before = table.current_version()
        identity = table.identity(before)
        self.change(table, products(10))
        assert table.current_version() > before
        assert table.identity(table.current_version()) != identity

    def test_the_identity_of_a_version_is_that_of_the_store_that_shows_it(self, table: StoredTable) -> None:
        with table.open() as store:
            assert table.identity(store.version) == store.identity

    def test_a_pin_is_the_current_version_unless_one_is_named(self, table: StoredTable) -> None:
        current = table.current_version()
        assert table.pin("query", 0) == current
        assert table.pin("query", 1, current) == current

    def test_a_pinned_batch_sees_the_same_rows_after_a_change_if_the_table_has_snapshots(
        self, table: StoredTable
    ) -> None:
        pinned = table.pin("query", 7)
        with table.open(pinned) as store:
            before, has_snapshots = rows_of(read_all(store), ["id", "price"]), store.capabilities.snapshot
        changed = products(10).set_column(2, "price", pa.array(np.full(10, -1.0)))
        self.change(table, changed)
        if not has_snapshots:
            return
        assert table.pin("query", 7) == pinned
        assert table.pin("query", 7, table.current_version()) == pinned
        with table.open(pinned) as store:
            assert rows_of(read_all(store), ["id", "price"]) == before
        assert table.pin("query", 8) == table.current_version()

    def test_codes_that_changed_between_versions_are_not_said_to_be_unchanged(self, table: StoredTable) -> None:
        codes = np.arange(0, 1500, 3, dtype=np.int64)
        with table.open() as old:
            version, identity = old.version, old.identity
        self.change(table, products(10).set_column(2, "price", pa.array(np.full(10, -1.0))))
        with table.open() as new:
            assert not new.unchanged_since(version, identity)(codes)[:10].any()

    def test_rows_that_a_worker_saves_are_read_by_the_next_one(self, table: StoredTable) -> None:
        saved = table.saved_rows
        if saved is None:
            return
        for content in (b"first rows", b"other rows"):
            saved.replace("some.rows", partial(_write_twice, content))
            deadline = time.monotonic() + 20
            while saved.read("some.rows", 1000) != content and time.monotonic() < deadline:
                time.sleep(0.02)
            assert saved.read("some.rows", 1000) == content
            assert saved.read("some.rows", len(content) - 1) == b""
        assert saved.read("other.rows", 1000) == b""


def _write_twice(content: bytes, raw: NewRows) -> None:
    raw.write(b"?" * 5 + content[5:])
    raw.write_start(content[:5])
