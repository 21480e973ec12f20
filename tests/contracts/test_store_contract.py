"""Every store keeps the contract."""

from __future__ import annotations

import pyarrow as pa
import pytest
from store_contract import StoreContract
from used_tables import ordered_by_use

from semistream.core.errors import SemistreamError
from semistream.master_table import MasterTable
from semistream.store.contract import MasterStore
from semistream.store.counting import CountingStore
from semistream.store.memory import MemoryStore
from semistream.store.paged import PagedFileStore, build
from semistream.store.throttling import ThrottlingStore


class TestMemoryStore(StoreContract):
    def make(self, rows: pa.Table, key: str | list[str], on_duplicate: str = "error") -> MasterStore:
        return MemoryStore(rows, key, on_duplicate=on_duplicate)


class TestPagedFileStore(StoreContract):
    def make(self, rows: pa.Table, key: str | list[str], on_duplicate: str = "error") -> MasterStore:
        build(rows, self.directory / "table", key, page_bytes=2048, on_duplicate=on_duplicate)
        return PagedFileStore(self.directory / "table")


class TestPagedFileStoreReadDirectly(StoreContract):
    def make(self, rows: pa.Table, key: str | list[str], on_duplicate: str = "error") -> MasterStore:
        build(rows, self.directory / "table", key, page_bytes=2048, on_duplicate=on_duplicate)
        try:
            return PagedFileStore(self.directory / "table", direct=True)
        except SemistreamError as error:
            pytest.skip(str(error))


class TestPagedFileStoreAfterMerges(StoreContract):
    def make(self, rows: pa.Table, key: str | list[str], on_duplicate: str = "error") -> MasterStore:
        if on_duplicate == "all":
            half = rows.slice(0, 0)
        else:
            half = rows.slice(0, len(rows) * 2 // 3)
        table = MasterTable.build(half, self.directory / "table", key, page_bytes=2048, on_duplicate=on_duplicate)
        table.merge(upserts=rows.slice(len(half)))
        return table.open()


class TestPagedFileStoreByUse(StoreContract):
    """Half of the rows are hot, in several heat classes."""

    def make(self, rows: pa.Table, key: str | list[str], on_duplicate: str = "error") -> MasterStore:
        table = MasterTable.build(rows, self.directory / "table", key, page_bytes=2048, on_duplicate=on_duplicate)
        return ordered_by_use(table).open()


class TestPagedFileStoreByUseAfterMerges(TestPagedFileStoreByUse):
    def make(self, rows: pa.Table, key: str | list[str], on_duplicate: str = "error") -> MasterStore:
        half = rows if on_duplicate == "all" else rows.slice(0, len(rows) * 2 // 3)
        table = MasterTable.build(half, self.directory / "table", key, page_bytes=2048, on_duplicate=on_duplicate)
        ordered_by_use(table).merge(upserts=rows.slice(len(half)))
        return table.open()


class TestCountingStore(StoreContract):
    def make(self, rows: pa.Table, key: str | list[str], on_duplicate: str = "error") -> MasterStore:
        return CountingStore(MemoryStore(rows, key, on_duplicate=on_duplicate), log=True)


class TestThrottlingStore(StoreContract):
    def make(self, rows: pa.Table, key: str | list[str], on_duplicate: str = "error") -> MasterStore:
        inside = MemoryStore(rows, key, on_duplicate=on_duplicate)
        return ThrottlingStore(inside, latency_seconds=1, bytes_per_second=1e6, sleep=lambda _: None)
