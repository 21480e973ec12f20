"""A join that can be run again and again and keeps what it has cached."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray
from semistream.core.budget import MemoryBudget, format_bytes, format_bytes_up
from semistream.core.clock import WallClock
from semistream.core.errors import SchemaDriftError
from semistream.core.process_memory import return_freed_memory
from semistream.core.stats import JoinStats
from semistream.engine.assembly import Assembly
from semistream.engine.cache.cache_stage import CacheStage
from semistream.engine.cache.hot_rows import HotRows
from semistream.engine.output.output import DeadLetters
from semistream.engine.output.output_plan import OutputPlan
from semistream.engine.phases.stream_input import BatchInput, Chunk
from semistream.engine.reading.group_reader import PageGroupReader
from semistream.engine.recipe import Recipe
from semistream.engine.rows.row_sizes import RowSizes, cuts
from semistream.engine.sizing.sizes import ROW_SHARE
from semistream.engine.waiting.staying_tuples import StayingTuples
from semistream.policies.contract import Staying
from semistream.store.contract import MasterStore

HAS_WAITED = {b"semistream": b"has waited"}
"""The metadata of batches whose rows stayed behind in an earlier run."""
_LINGER_SECONDS = 0.02
"""How long rows that are ready are held back for more while the input is silent."""


class JoinSession:
    """A join of streams of one schema with one version of a master table.

    Runs come one after the other; a run that was not brought to its end leaves the session unusable. Caches, and what
    the policies have learned, stay from run to run. With `finish_by_demand` a run ends quickly: what still waits when
    its input has ended is answered by reads of just the pages it needs. `cache` is the cache of an earlier session of
    the same table version, recipe, memory and cached columns.
    """

    def __init__(
        self,
        store: MasterStore,
        plan: OutputPlan,
        stream_schema: pa.Schema,
        *,
        recipe: Recipe,
        budget: MemoryBudget,
        stream_row_bytes: float,
        dead_letters: DeadLetters | None = None,
        parameters: Mapping[str, float] | None = None,
        seed: int = 0,
        finish_by_demand: bool = False,
        cache: CacheStage | None = None,
    ) -> None:
        return_freed_memory(budget.total_bytes)
        self.store = store
        self.budget = budget
        self.plan = plan
        self._stream_schema = stream_schema
        self.assembly = Assembly(
            recipe,
            store,
            budget,
            WallClock(),
            plan=plan,
            stream_schema=stream_schema,
            dead_letters=dead_letters,
            stream_row_bytes=stream_row_bytes,
            seed=seed,
            parameters=parameters,
            finish_by_demand=finish_by_demand,
            cache=cache,
        )
        self._encoder = _Encoder(plan, store, self.assembly, stream_schema)

    @property
    def stats(self) -> JoinStats:
        """What all runs have counted so far."""
        self.assembly.stats.count_traffic(self.store.traffic)
        return self.assembly.stats

    @property
    def dead_letters(self) -> DeadLetters | None:
        """What takes the rows that are too large for the memory; without it they are an error."""
        return self.assembly.dead_letters

    @dead_letters.setter
    def dead_letters(self, taker: DeadLetters | None) -> None:
        self.assembly.dead_letters = taker

    def shared_cache(self) -> CacheStage | None:
        """Return the cache that all runs share."""
        return self.assembly.shared_cache()

    def staying(self, policy: Staying, since: str) -> StayingTuples:
        """Return what keeps the rows of a run that stay for a later one; the column `since` says when each came."""
        return self.assembly.staying(policy, since)

    def warm(self, rows: HotRows) -> int:
        """Let rows that another cache held enter the cache, before any run; return how many have."""
        cache = self.assembly.shared_cache()
        return cache.warm(rows) if cache is not None else 0

    def run(
        self,
        batches: Iterable[pa.RecordBatch | None],
        *,
        pump: bool = False,
        staying: StayingTuples | None = None,
    ) -> Generator[pa.RecordBatch]:
        """Join the batches and yield record batches as rows are answered; with `pump` the input may be silent.

        With `staying`, which `staying` returns, some rows may stay behind, and must be taken before the next run.
        """
        assembly = self.assembly
        chunk_bytes = max(1, self.budget.total_bytes // 24)
        pieces = _pieces(iter(batches), self._stream_schema, assembly.sizes.chunk_rows, chunk_bytes)
        stream = BatchInput(pieces, self._encoder.encode, pump=pump, ahead_bytes=chunk_bytes)
        loop, output = assembly.start(stream, staying=staying)
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


def typical_row_bytes(batch: pa.RecordBatch, memory_bytes: int) -> float:
    """Return the mean size of a row, or where single rows may spoil it the lower quartile of some."""
    mean: float = max(1.0, batch.nbytes / batch.num_rows)
    if mean * 1024 < memory_bytes:
        return mean
    sampled = np.linspace(0, batch.num_rows - 1, min(64, batch.num_rows)).astype(np.int64)
    sizes: list[int] = sorted(batch.slice(int(row), 1).nbytes for row in sampled)
    return float(max(1, sizes[len(sizes) // 4]))


class _Encoder:
    """Turns record batches into chunks of coded tuples."""

    def __init__(self, plan: OutputPlan, store: MasterStore, assembly: Assembly, schema: pa.Schema) -> None:
        self._keys = plan.stream_keys
        self._codec = store.codec
        self._reader: PageGroupReader = assembly.reader
        self._largest_bytes = assembly.largest_row_bytes
        self._sizes = RowSizes(schema)

    def encode(self, first_position: int, batch: pa.RecordBatch) -> Chunk:
        keys = [batch.column(batch.schema.get_field_index(name)) for name in self._keys]
        encoded = self._codec.encode(keys)
        rows = np.arange(batch.num_rows, dtype=np.int64)
        chunk = Chunk(first_position, encoded.codes, rows, None, batch=batch)
        chunk.has_waited = batch.schema.metadata == HAS_WAITED
        if encoded.usable is not None:
            nulls = encoded.nulls if encoded.nulls is not None else np.zeros(batch.num_rows, dtype=np.bool_)
            chunk.null_rows, chunk.unmatchable_rows = rows[nulls], rows[~encoded.usable & ~nulls]
            _keep(chunk, encoded.usable)
        if self._sizes.is_variable:
            chunk.variable_bytes = self._sizes.total(batch)
        if chunk.variable_bytes + self._sizes.fixed_bytes > self._largest_bytes:
            self._refuse_large_rows(chunk)
        if not self._reader.can_read_all:
            self._refuse_unreadable_pages(chunk)
        return chunk

    def _refuse_unreadable_pages(self, chunk: Chunk) -> None:
        chunk.page_groups = self._reader.locate(chunk.codes)
        unreadable = self._reader.page_groups.unreadable(chunk.page_groups)
        if unreadable is not None and unreadable.any():
            largest = self._reader.page_group_bytes(chunk.page_groups[unreadable])
            _refuse(chunk, unreadable, "The page of a master row", largest, self._largest_bytes)

    def _refuse_large_rows(self, chunk: Chunk) -> None:
        assert chunk.batch is not None
        sizes = self._sizes.of(chunk.batch, chunk.rows) + self._sizes.fixed_bytes
        refused = sizes > self._largest_bytes
        if refused.any():
            _refuse(chunk, refused, "A stream row", int(sizes.max()), self._largest_bytes)


def _refuse(chunk: Chunk, refused: BoolArray, what: str, size_bytes: int, largest_bytes: int) -> None:
    reason = too_large(what, size_bytes, largest_bytes, size_bytes * ROW_SHARE)
    chunk.refusals = (*chunk.refusals, (chunk.rows[refused], reason))
    _keep(chunk, ~refused)


def too_large(what: str, size_bytes: int, largest_bytes: int, enough_bytes: int) -> str:
    """Return why something cannot be joined within the memory, and how much would be enough."""
    return (
        f"{what} is too large for the memory budget: it takes {format_bytes(size_bytes)}, more than the "
        f"{format_bytes(largest_bytes)} that one may take; give at least {format_bytes_up(enough_bytes)}."
    )


def _keep(chunk: Chunk, kept: BoolArray) -> None:
    chunk.codes, chunk.rows = chunk.codes[kept], chunk.rows[kept]
    if chunk.page_groups is not None:
        chunk.page_groups = chunk.page_groups[kept]


def _pieces(
    batches: Iterator[pa.RecordBatch | None], schema: pa.Schema, rows: int, size_bytes: int
) -> Iterator[pa.RecordBatch | None]:
    """Cut batches so that none has more rows or, but for single rows, more bytes; check each against the schema."""
    sizes = RowSizes(schema)
    for batch in batches:
        if batch is None or not batch.num_rows:
            yield None
            continue
        whole = conforming(batch, schema)
        del batch
        for start in range(0, whole.num_rows, rows):
            yield from _cut(whole.slice(start, rows), sizes, size_bytes)
        del whole  # while the next one is awaited


def _cut(batch: pa.RecordBatch, sizes: RowSizes, size_bytes: int) -> Iterator[pa.RecordBatch]:
    count = batch.num_rows
    each_bytes = sizes.fixed_bytes
    if not sizes.is_variable or sizes.total(batch) + each_bytes * count <= size_bytes:
        yield batch
        return
    of_rows = sizes.of(batch, np.arange(count, dtype=np.int64)) + each_bytes
    for start, end in cuts(of_rows, count, size_bytes):
        yield batch.slice(start, end - start)


def conforming(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of the schema; an added column is ignored, a missing or retyped one is an error."""
    if batch.schema.equals(schema):
        return batch
    for field in schema:
        if field.name not in batch.schema.names:
            raise SchemaDriftError(
                f"The stream's column {field.name!r} is missing from a later batch: start the join again."
            )
        arrived = batch.schema.field(field.name).type
        if arrived != field.type:
            raise SchemaDriftError(
                f"The stream's column {field.name!r} was {field.type} and is {arrived} in a later batch: start the "
                f"join again."
            )
    return pa.RecordBatch.from_arrays([batch.column(field.name) for field in schema], schema=schema)
