"""A table of a database: each batch is staged by the executors and written by one transaction, exactly once."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from semistream.core.errors import (
    InvalidSettingError,
    NameClashError,
    SchemaDriftError,
    SinkUnavailableError,
    UnsupportedValueError,
)
from semistream.pipeline.description import PipelineDescription
from semistream.pipeline.sinks.contract import Batch, BatchSink, Guarantee, WrittenBatches, spelled_columns
from semistream.pipeline.sinks.database.staging_task import CHUNKS, StagingTask, warehouse_at
from semistream.pipeline.sinks.database.warehouse import (
    CHUNK,
    StagedColumn,
    StagedRowsLostError,
    TargetColumn,
    TargetTable,
    Upsert,
    Warehouse,
)
from semistream.pipeline.sinks.upserts import newest_of_keys
from semistream.spark.column_names import ColumnNames
from semistream.store.database.address import parse_address

_TIMES_STAGED = 3


class DatabaseTable(BatchSink):
    """A table of PostgreSQL, MySQL or MariaDB; the first batch makes it if it is not there."""

    guarantee = Guarantee.EXACTLY_ONCE
    remembers = True

    def __init__(self, description: PipelineDescription) -> None:
        super().__init__(description)
        assert description.sink.table is not None
        self._address = parse_address(description.sink.table, needs_key=False)
        self._is_prepared = False

    @property
    def place(self) -> str:
        """The server and the table."""
        return f"{self._address.server} {self._address.table_name}"

    @property
    def _warehouse(self) -> Warehouse:
        return warehouse_at(self._address)

    def check(self, rows: DataFrame) -> None:
        """Raise an error unless the table takes the columns of the rows, or can be made for them."""
        there = self._ask(self._warehouse.described)
        if there is None:
            self._new_columns(rows)
        else:
            self._fitting(rows, there)

    def written(self, spark: SparkSession) -> Sequence[WrittenBatches]:  # noqa: ARG002 - the ledger tells it
        """Return what the ledger says."""
        found: list[WrittenBatches] = self._ask(self._warehouse.written)
        return found

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Stage the rows, and write them and the entry of the ledger by one transaction."""
        self._prepare(rows, batch)
        if self._ask(partial(self._warehouse.has_batch, batch=batch)):
            return
        there = self._ask(self._warehouse.described)
        if there is None:
            raise SchemaDriftError(f"The table {self._address.table_name!r} is gone: restore it, then start again.")
        columns = self._fitting(rows, there)
        for attempt in range(_TIMES_STAGED):
            try:
                self._stage_and_commit(rows, batch, columns)
                return
            except StagedRowsLostError:
                if attempt == _TIMES_STAGED - 1:
                    raise SinkUnavailableError(
                        f"{self._address.server} has lost staged rows {_TIMES_STAGED} times: check the server, then "
                        f"start again."
                    ) from None

    def _prepare(self, rows: DataFrame, batch: Batch) -> None:
        """Make ledger and table if they are not there, and remove what killed attempts have left, once a run."""
        if self._is_prepared:
            return

        def prepare(connection: Any) -> None:
            warehouse = self._warehouse
            warehouse.ensure_ledger(connection)
            if warehouse.described(connection) is None:
                key = self._key(rows) if self.settings.mode == "upsert" else []
                warehouse.create(connection, self._new_columns(rows), key)
            warehouse.drop(connection, warehouse.tables_like(connection, self._prefix(batch)))

        self._ask(prepare)
        self._is_prepared = True

    def _stage_and_commit(self, rows: DataFrame, batch: Batch, columns: Sequence[StagedColumn]) -> None:
        warehouse = self._warehouse
        upsert = None
        if self.settings.mode == "upsert":
            key, order = self._key(rows), self._order(rows)
            in_table = dict(zip(rows.columns, (column.name for column in columns), strict=True))
            upsert = Upsert(tuple(in_table[name] for name in key), None if order is None else in_table[order])
            rows = newest_of_keys(rows, key, order)
        # Of its own for each attempt: a task of an earlier one that is still at work finds no table to write to.
        staging = f"{self._prefix(batch)}{batch.number}_{secrets.token_hex(4)}"
        self._ask(partial(warehouse.make_staging, staging=staging, columns=columns))
        try:
            task = StagingTask(self._address, staging, tuple(column.name for column in columns))
            chunks = {row.chunk: row.row_count for row in rows.mapInArrow(task, CHUNKS).collect()}
            commit = partial(
                warehouse.commit, batch=batch, staging=staging, chunks=chunks, columns=columns, upsert=upsert
            )
            warehouse.sessions.run(commit)
        finally:
            with suppress(SinkUnavailableError):  # the next run removes it
                self._ask(partial(warehouse.drop, tables=[staging]))

    def _ask(self, work: Any) -> Any:
        def run(connection: Any) -> Any:
            self._warehouse.begin(connection)
            return work(connection)

        return self._warehouse.sessions.run(run)

    def _prefix(self, batch: Batch) -> str:
        """Return what the staging tables of a query for this table begin with."""
        digest = hashlib.blake2s(f"{batch.query}/{self._address.table_name}".encode(), digest_size=6)
        return f"semistream_{digest.hexdigest()}_"

    def _key(self, rows: DataFrame) -> list[str]:
        return spelled_columns(rows, self.settings.key, "key")

    def _order(self, rows: DataFrame) -> str | None:
        order_by = self.settings.order_by
        return None if order_by is None else spelled_columns(rows, (order_by,), "order_by")[0]

    def _fitting(self, rows: DataFrame, there: TargetTable) -> list[StagedColumn]:
        """Return how each column reaches the table; an error unless the table keeps what this sink promises."""
        if not there.is_transactional:
            raise InvalidSettingError(
                f"The table {self._address.table_name!r} has an engine without transactions, so that rows could be "
                f"written twice: change it by ALTER TABLE … ENGINE = InnoDB."
            )
        columns = self._staged(rows, there)
        self._check_index(rows, there)
        return columns

    def _new_columns(self, rows: DataFrame) -> list[tuple[str, str]]:
        """Return columns and types of a table that is made for the rows."""
        key = self._key(rows) if self.settings.mode == "upsert" else []
        columns = []
        self._warehouse.check_name("table", self._address.table)
        for field in rows.schema:
            _check_not_ours(field.name)
            self._warehouse.check_name("column", field.name)
            kind = self._warehouse.new_type(field.dataType, is_key=field.name in key)
            if kind is None and self._warehouse.new_type(field.dataType) is not None:
                raise InvalidSettingError(
                    f"The key column {field.name!r} has no length, which the database needs: create the table "
                    f"{self._address.table_name!r} with a primary key such as VARCHAR(100) COLLATE utf8mb4_nopad_bin "
                    f"(MariaDB) or utf8mb4_0900_bin (MySQL), then start again."
                )
            if kind is None:
                raise _unsupported(field.name, field.dataType.simpleString())
            columns.append((field.name, kind))
        return columns

    def _staged(self, rows: DataFrame, there: TargetTable) -> list[StagedColumn]:
        """Return how each column of the rows reaches the table, or raise an error about the one that cannot."""
        rule, name = ColumnNames.of(rows.sparkSession), self._address.table_name
        known = {column.name: column for column in there.columns}
        columns = []
        for field in rows.schema:
            _check_not_ours(field.name)
            found = known.get(rule.spelled(field.name, list(known)))
            if self._warehouse.new_type(field.dataType) is None:
                raise _unsupported(field.name, field.dataType.simpleString())
            if found is None or found.is_made:
                why = f"has no column {field.name!r}" if found is None else f"makes the values of {field.name!r} itself"
                raise SchemaDriftError(f"The table {name!r} {why}: change the table, or drop it by [[transform]].")
            staged = self._warehouse.staged(field.dataType, found)
            if staged is None:
                raise SchemaDriftError(
                    f"The table {name!r} has {_shown(found)} in the column {found.name!r}, which does not take all "
                    f"values of {field.dataType.simpleString()}: cast it in [[transform]], or change the table."
                )
            columns.append(staged)
        given = {column.name for column in columns}
        for column in there.columns:
            if column.is_required and column.name not in given:
                raise SchemaDriftError(
                    f"The table {name!r} needs a value in the column {column.name!r}, which the rows do not have: add "
                    f"it by [[transform]], or give it a default."
                )
        return columns

    def _check_index(self, rows: DataFrame, there: TargetTable) -> None:
        """Raise an error unless an upsert finds rows by exactly the index of its key."""
        if self.settings.mode != "upsert":
            return
        rule, name = ColumnNames.of(rows.sparkSession), self._address.table_name
        names = [column.name for column in there.columns]
        key = frozenset(rule.spelled(part, names) for part in self._key(rows))
        if key not in there.unique:
            raise InvalidSettingError(
                f"The table {name!r} has no unique index on {', '.join(self._key(rows))} alone, which an upsert needs: "
                f"create one, or correct [sink] key."
            )
        for column in there.columns:
            if column.name in key and column.blurs is not None:
                raise InvalidSettingError(f"The key column {column.name!r} of the table {name!r} {column.blurs}.")
        if self._address.kind != "mysql":
            return
        given = {rule.spelled(field.name, names) for field in rows.schema}
        for index in there.unique:
            if index != key and not key <= index and index & given:
                raise InvalidSettingError(
                    f"The table {name!r} has another unique index, on {', '.join(sorted(index))}, by which MySQL would "
                    f"update rows of other keys: drop it, or leave its columns out."
                )


def _check_not_ours(name: str) -> None:
    if name.lower() == CHUNK:
        raise NameClashError(f"The column {name!r} has the name of a column of staging tables: rename it.")


def _shown(column: TargetColumn) -> str:
    return column.type if column.digits is None else f"{column.type}({column.digits}, {column.scale or 0})"


def _unsupported(name: str, kind: str) -> UnsupportedValueError:
    return UnsupportedValueError(
        f"The column {name!r} is of type {kind}, which databases do not have: turn it into text by to_json({name}) in "
        f"[[transform]], or drop it."
    )
