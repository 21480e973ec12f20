"""Every stored table keeps the contract."""

from __future__ import annotations

import pyarrow as pa
from table_contract import TableContract
from table_without_snapshots import TableWithoutSnapshots

from semistream.store.contract import StoredTable
from semistream.store.tables import build, merge, recluster, table_at, use_in_column


class TestTableInAFolder(TableContract):
    def make(self, rows: pa.Table, key: str) -> StoredTable:
        build(rows, self.directory / "table", key, page_bytes=2048)
        return table_at(self.directory / "table")

    def change(self, table: StoredTable, rows: pa.Table) -> None:
        assert table.current_version()
        merge(self.directory / "table", rows)


class TestTableInAFolderByUse(TestTableInAFolder):
    def make(self, rows: pa.Table, key: str) -> StoredTable:
        table = super().make(rows, key)
        recluster(self.directory / "table", use_in_column(key))
        return table


class TestTableWithoutSnapshots(TableContract):
    def make(self, rows: pa.Table, key: str) -> StoredTable:
        return TableWithoutSnapshots(rows, key)

    def change(self, table: StoredTable, rows: pa.Table) -> None:
        assert isinstance(table, TableWithoutSnapshots)
        old = {row["id"]: row for row in table.rows.to_pylist()} | {row["id"]: row for row in rows.to_pylist()}
        table.replace(pa.Table.from_pylist(list(old.values()), schema=table.rows.schema))
