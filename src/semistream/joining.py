"""The join of Arrow record batches with a master table, without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from semistream.algorithms.assembly import Assembly, check_parameters
from semistream.algorithms.recipe import Recipe
from semistream.algorithms.registry import DEFAULT_ALGORITHM, algorithm_named
from semistream.core.arrays import BoolArray
from semistream.core.budget import MemoryBudget
from semistream.core.clock import WallClock
from semistream.core.errors import InvalidSettingError, SchemaDriftError, UnknownColumnError
from semistream.core.process_memory import return_freed_memory
from semistream.core.stats import JoinStats
from semistream.engine.output import DeadLetters
from semistream.engine.output_plan import OutputPlan, check_join_type, plan_output
from semistream.engine.reader import PartitionReader
from semistream.engine.stream_input import BatchInput, Chunk
from semistream.store.contract import MasterStore
from semistream.store.master_table import MasterTable

Batches: TypeAlias = pa.Table | pa.RecordBatchReader | Iterable[pa.RecordBatch | None]
_LINGER_SECONDS = 0.02
"""How long rows that are ready are held back for more while the input is silent."""

On: TypeAlias = str | Sequence[str] | Mapping[str, str]


def join(
    batches: Batches,
    master: MasterTable | MasterStore | str | Path,
    *,
    on: On,
    how: str = "inner",
    algorithm: str = DEFAULT_ALGORITHM,
    memory: int | str = "64MB",
    columns: Sequence[str] | None = None,
    replace: Mapping[str, str] | None = None,
    suffix: str | None = None,
    dead_letters: DeadLetters | None = None,
    parameters: Mapping[str, float] | None = None,
    seed: int = 0,
) -> JoinedBatches:
    """Join a stream of record batches with a master table, lazily, inside `memory` bytes.

    `on` names the key columns, or maps those of the stream to those of the master table. `how` is inner, left, semi or
    anti. `columns` are the master's columns to add (by default all but its key), `replace` puts a master column in the
    place of a stream column, and `suffix` is added to master columns whose names the stream has too. Rows leave when
    they are answered, so not in the order they came. While an iterator is silent, rows that wait are still answered.
    Rows too large for the budget are handed to `dead_letters` with a reason, or raise RowTooLargeError without it.

    What can be checked is checked at once: settings always, columns and types as soon as the schema of the stream is
    known, which for a bare iterator is when its first batch comes.
    """
    check_join_type(how)
    recipe = algorithm_named(algorithm)
    check_parameters(recipe, parameters or {})
    return JoinedBatches(
        batches,
        _opened(master),
        on,
        lambda stream, store, pairs: plan_output(
            stream, store.schema, pairs, how=how, columns=columns, replace=replace, suffix=suffix
        ),
        recipe=recipe,
        memory=memory,
        dead_letters=dead_letters,
        parameters=parameters,
        seed=seed,
    )


class JoinedBatches(Iterator[pa.RecordBatch]):
    """The output of a join: record batches, made as they are asked for."""

    def __init__(
        self,
        batches: Batches,
        store: MasterStore,
        on: On,
        plan: Callable[[pa.Schema, MasterStore, list[tuple[str, str]]], OutputPlan],
        *,
        recipe: Recipe,
        memory: int | str,
        dead_letters: DeadLetters | None,
        parameters: Mapping[str, float] | None,
        seed: int,
    ) -> None:
        self._recipe = recipe
        self._budget = MemoryBudget(memory)
        self._store = store
        self._pairs = _key_pairs(on, store)
        self._make_plan = plan
        self._dead_letters = dead_letters
        self._parameters = parameters
        self._seed = seed
        self._stats = JoinStats()
        self._plan: OutputPlan | None = None
        self._assembly: Assembly | None = None
        self._pump = not isinstance(batches, pa.Table | list | tuple)
        known = batches.schema if isinstance(batches, pa.Table | pa.RecordBatchReader) else None
        if isinstance(batches, list | tuple) and batches:
            known = next((batch.schema for batch in batches if batch is not None), None)
        if known is not None:
            self._prepare(known)
        self._source = iter(batches.to_batches() if isinstance(batches, pa.Table) else batches)
        self._output = self._run()

    @property
    def stats(self) -> JoinStats:
        """What the join has counted so far."""
        return self._assembly.stats if self._assembly is not None else self._stats

    @property
    def schema(self) -> pa.Schema | None:
        """The schema of the output; None while the schema of the stream is not known."""
        return self._plan.schema if self._plan is not None else None

    def __next__(self) -> pa.RecordBatch:
        return next(self._output)

    def close(self) -> None:
        """Stop early."""
        self._output.close()

    def read_all(self) -> pa.Table:
        """Return all that is left as one table."""
        batches = list(self)
        if self._plan is None:
            raise InvalidSettingError(
                "The stream had no batch, so its schema is not known: pass a reader with a schema."
            )
        return pa.Table.from_batches(batches, schema=self._plan.schema)

    def _prepare(self, stream: pa.Schema) -> None:
        plan = self._make_plan(stream, self._store, self._pairs)
        self._store.codec.check(plan.stream_keys, [stream.field(name).type for name in plan.stream_keys])
        self._plan, self._stream_schema = plan, stream

    def _run(self) -> Generator[pa.RecordBatch]:
        return_freed_memory(self._budget.total_bytes)
        first = next((batch for batch in self._source if batch is not None and batch.num_rows), None)
        if first is None:
            return
        if self._plan is None:
            self._prepare(first.schema)
        assembly = self._assembly = Assembly(
            self._recipe,
            self._store,
            self._budget,
            WallClock(),
            plan=self._plan,
            stream_schema=self._stream_schema,
            dead_letters=self._dead_letters,
            stream_row_bytes=_typical_row_bytes(first, self._budget.total_bytes),
            seed=self._seed,
            parameters=self._parameters,
        )
        chunk_bytes = max(1, self._budget.total_bytes // 24)
        pieces = _pieces(_chain(first, self._source), self._stream_schema, assembly.chunk_rows, chunk_bytes)
        encoder = _Encoder(self._plan, self._store, assembly)
        loop, output = assembly.start(lambda _: BatchInput(pieces, encoder.encode, pump=self._pump))
        assert output is not None
        rounds = loop.rounds()
        try:
            flushed = time.monotonic()
            for _ in rounds:
                flush = loop.pausing or (loop.idle and time.monotonic() - flushed > _LINGER_SECONDS)
                if flush or output.is_due:
                    yield from output.ready(flush=flush)
                    flushed = time.monotonic()
            yield from output.ready(flush=True)
        finally:
            loop.close()
            rounds.close()


class _Encoder:
    """Turns record batches into chunks of coded tuples."""

    def __init__(self, plan: OutputPlan | None, store: MasterStore, assembly: Assembly) -> None:
        assert plan is not None
        self._keys = plan.stream_keys
        self._codec = store.codec
        self._reader: PartitionReader = assembly.reader
        self._largest_row_bytes = assembly.largest_row_bytes

    def encode(self, first_position: int, batch: pa.RecordBatch) -> Chunk:
        keys = [batch.column(batch.schema.get_field_index(name)) for name in self._keys]
        encoded = self._codec.encode(keys)
        rows = np.arange(batch.num_rows, dtype=np.int64)
        chunk = Chunk(first_position, encoded.codes, rows, np.empty(0, dtype=np.int32), batch=batch)
        if encoded.usable is not None:
            nulls = encoded.nulls if encoded.nulls is not None else np.zeros(batch.num_rows, dtype=np.bool_)
            chunk.null_rows, chunk.unmatchable_rows = rows[nulls], rows[~encoded.usable & ~nulls]
            _keep(chunk, encoded.usable)
        chunk.partitions = self._reader.locate(chunk.codes)
        unreadable = self._reader.partitions.unreadable(chunk.partitions)
        if batch.nbytes > self._largest_row_bytes:
            sizes = np.array([batch.slice(int(row), 1).nbytes for row in chunk.rows])
            too_large = sizes > self._largest_row_bytes
            unreadable = too_large if unreadable is None else unreadable | too_large
        if unreadable is not None and unreadable.any():
            chunk.refused_rows = chunk.rows[unreadable]
            _keep(chunk, ~unreadable)
        return chunk


def _keep(chunk: Chunk, kept: BoolArray) -> None:
    chunk.codes, chunk.rows = chunk.codes[kept], chunk.rows[kept]
    if len(chunk.partitions):
        chunk.partitions = chunk.partitions[kept]


def _opened(master: MasterTable | MasterStore | str | Path) -> MasterStore:
    if isinstance(master, MasterStore):
        return master
    return (master if isinstance(master, MasterTable) else MasterTable(master)).open()


def _key_pairs(on: On, store: MasterStore) -> list[tuple[str, str]]:
    """Return the key columns of the stream and of the master table, in the order of the master's key."""
    if isinstance(on, str):
        on = [on]
    pairs = dict(on) if isinstance(on, Mapping) else {name: name for name in on}
    if len(pairs) == 1 and len(store.key) == 1 and not isinstance(on, Mapping):
        only = next(iter(pairs))
        pairs = {only: store.key[0] if only not in store.schema.names else only}
    by_master = {theirs: ours for ours, theirs in pairs.items()}
    if set(by_master) != set(store.key):
        raise UnknownColumnError(
            f"The master table's key is {', '.join(store.key)}, but `on` gives {', '.join(by_master)}: "
            f"name exactly its key columns, or map stream columns to them."
        )
    return [(by_master[name], name) for name in store.key]


def _typical_row_bytes(batch: pa.RecordBatch, memory_bytes: int) -> float:
    """Return the mean size of a row, or where single rows may spoil it the lower quartile of some."""
    mean: float = max(1.0, batch.nbytes / batch.num_rows)
    if mean * 1024 < memory_bytes:
        return mean
    sampled = np.linspace(0, batch.num_rows - 1, min(64, batch.num_rows)).astype(np.int64)
    sizes: list[int] = sorted(batch.slice(int(row), 1).nbytes for row in sampled)
    return float(max(1, sizes[len(sizes) // 4]))


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch | None]) -> Iterator[pa.RecordBatch | None]:
    yield first
    yield from rest


def _pieces(
    batches: Iterator[pa.RecordBatch | None], schema: pa.Schema, rows: int, size_bytes: int
) -> Iterator[pa.RecordBatch | None]:
    """Cut batches so that none has more rows or, but for single rows, more bytes; check each against the schema."""
    for batch in batches:
        if batch is None or not batch.num_rows:
            yield None
            continue
        conforming = _conform(batch, schema)
        step = rows
        if conforming.nbytes > size_bytes:
            step = max(1, min(rows, conforming.num_rows * size_bytes // conforming.nbytes))
        for start in range(0, conforming.num_rows, step):
            yield conforming.slice(start, step)


def _conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of the schema; an added column is ignored, a missing or retyped one is an error."""
    if batch.schema.equals(schema):
        return batch
    for field in schema:
        if field.name not in batch.schema.names:
            raise SchemaDriftError(f"The stream's column {field.name!r} is missing from a later batch: restart.")
        found = batch.schema.field(field.name).type
        if found != field.type:
            raise SchemaDriftError(
                f"The stream's column {field.name!r} was {field.type} and is {found} in a later batch: restart."
            )
    return pa.RecordBatch.from_arrays([batch.column(field.name) for field in schema], schema=schema)


__all__ = ["JoinedBatches", "join"]
