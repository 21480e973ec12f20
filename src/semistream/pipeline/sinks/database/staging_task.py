"""What runs in a Python worker: rows go into the staging table, and the driver is told in which chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

import pyarrow as pa
from pyspark import TaskContext

from semistream.pipeline.sinks.database.warehouse import Warehouse
from semistream.store.database.address import DatabaseAddress

CHUNKS = "chunk BIGINT, row_count BIGINT"
_CHUNK_BITS = 24
_CHUNK_BYTES = 16_000_000
_SCHEMA = pa.schema([("chunk", pa.int64()), ("row_count", pa.int64())])


@lru_cache(maxsize=2)
def warehouse_at(address: DatabaseAddress) -> Warehouse:
    """Return the table of an address; its connections stay open from task to task."""
    if address.kind == "postgresql":
        from semistream.pipeline.sinks.database.postgresql import PostgresqlWarehouse

        return PostgresqlWarehouse(address)
    from semistream.pipeline.sinks.database.mysql import MysqlWarehouse

    return MysqlWarehouse(address)


@dataclass(frozen=True)
class StagingTask:
    """Stages the rows of a task, one chunk for each Arrow batch.

    A chunk whose answer was lost is sent again under another number, and a task that failed or was not needed leaves
    chunks that nobody names: only those that are returned here count.
    """

    address: DatabaseAddress
    staging: str
    columns: tuple[str, ...]
    """Their names in the staging table."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage all rows, and return the numbers of the chunks and of their rows."""
        context = TaskContext.get()
        assert context is not None
        numbers = count(context.taskAttemptId() << _CHUNK_BITS)
        for batch in batches:
            if batch.num_rows:
                rows = pa.RecordBatch.from_arrays(batch.columns, list(self.columns))
                for part in _bounded(rows):
                    chunk = self._staged(part, numbers)
                    yield pa.RecordBatch.from_arrays([pa.array([chunk]), pa.array([part.num_rows])], schema=_SCHEMA)

    def _staged(self, rows: pa.RecordBatch, numbers: Iterator[int]) -> int:
        """Return the number under which rows were staged for certain."""
        warehouse = warehouse_at(self.address)

        def stage(connection: object) -> int:
            chunk = next(numbers)
            warehouse.begin(connection)
            warehouse.stage(connection, self.staging, chunk, rows)
            return chunk

        return warehouse.sessions.run(stage)


def _bounded(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows in parts whose texts fit into memory beside them."""
    size = max(1, min(rows.num_rows, int(rows.num_rows * _CHUNK_BYTES / max(1, rows.nbytes))))
    for start in range(0, rows.num_rows, size):
        yield rows.slice(start, size)
