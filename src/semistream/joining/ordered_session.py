"""A join that lets rows leave in the order they came, chunk by chunk, and keeps what it has cached."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from semistream.algorithms.shared_parameters import CACHE_SHARE
from semistream.core.arrays import BoolArray, Int64Array
from semistream.core.budget import MemoryBudget
from semistream.core.errors import InvalidSettingError, RowTooLargeError
from semistream.core.process_memory import return_freed_memory
from semistream.core.stats import JoinStats
from semistream.engine.cache.cache_stage import CacheStage
from semistream.engine.cache.hot_rows import HotRows
from semistream.engine.output.output import DeadLetters
from semistream.engine.output.output_plan import OutputPlan
from semistream.engine.parameters import Values
from semistream.engine.reading.chunk_look_up import ChunkAnswers, ChunkLookUp, TooManyRows
from semistream.engine.reading.misses import ChunkKeys
from semistream.engine.recipe import Recipe
from semistream.engine.rows.merged_rows import NOWHERE
from semistream.engine.rows.row_sizes import RowSizes, cuts
from semistream.engine.sizing.ordered_sizes import (
    CHUNK_ROW_BYTES,
    MAX_CACHE_SHARE,
    PAGE_SHARE,
    OrderedSizes,
    ordered_sizes,
)
from semistream.joining.ordered_cache import new_ordered_cache
from semistream.joining.ordered_output import Answered, OrderedOutput
from semistream.joining.session import conforming, too_large
from semistream.store.contract import MasterStore


class OrderedSession:
    """A join of streams of one schema with one version of a master table, whose rows leave in the order they came.

    A chunk of rows is in memory anyway, so nothing waits and the page choice is not asked: the chunk's rows are looked
    for in the cache, the pages that the others need are read once each, in the order of the table, and every row of the
    output is gathered from the cache or from what was found. Runs come one after the other and share the cache;
    `cache` is that of an earlier session of the same table version, recipe, memory and cached columns. What the budget
    has above or below `usual_bytes` is the cache's.
    """

    def __init__(
        self,
        store: MasterStore,
        plan: OutputPlan,
        stream_schema: pa.Schema,
        *,
        recipe: Recipe,
        budget: MemoryBudget,
        parameters: Mapping[str, float] | None = None,
        dead_letters: DeadLetters | None = None,
        seed: int = 0,
        cache: CacheStage | None = None,
        usual_bytes: int | None = None,
    ) -> None:
        values = recipe.values(parameters)
        columns, self.sizes = columns_and_sizes(
            store, plan, budget, recipe=recipe, values=values, usual_bytes=usual_bytes
        )
        return_freed_memory(budget.total_bytes)
        self.store = store
        self.budget = budget
        self.plan = plan
        self._stats = JoinStats()
        self._stream_schema = stream_schema
        self.dead_letters = dead_letters
        """What takes the rows that are too large for the memory; without it they are an error."""
        self.unmatched: Callable[[pa.RecordBatch, Int64Array], None] | None = None
        """What is told which rows of a batch have no match, null keys and refused rows among them."""
        self._stats.memory_bytes = budget.by_component()
        if cache is None:
            cache = new_ordered_cache(store, recipe, values, self.sizes, columns, self._stats, seed)
        self._cached = cache if cache is not None and cache.answers_by_code else None
        if cache is not None:
            cache.count_in(self._stats)
        self._look_up = ChunkLookUp(
            store,
            self._cached,
            columns,
            self._stats,
            found_bytes=self.sizes.found_bytes,
            read_bytes=self.sizes.read_bytes,
            largest_page_bytes=self.sizes.largest_page_bytes,
            piece_bytes=self.sizes.piece_bytes,
        )
        self._output = OrderedOutput(plan, store.codec, stream_schema, columns, self.sizes.piece_bytes)
        self._chunk_rows = self.sizes.chunk_rows

    @property
    def stats(self) -> JoinStats:
        """What all runs have counted so far."""
        self._stats.count_traffic(self.store.traffic)
        return self._stats

    @property
    def missed_tuples(self) -> int:
        """Tuples that the cache could not answer."""
        return self._look_up.missed_tuples

    def shared_cache(self) -> CacheStage | None:
        """Return the cache that all runs share."""
        return self._cached

    def warm(self, rows: HotRows) -> int:
        """Let rows that another cache held enter the cache, before any run; return how many have."""
        if self._look_up.needs_keys:  # which those that are absent have not brought with them
            rows = replace(rows, absent_codes=rows.absent_codes[:0])
        return self._cached.warm(rows) if self._cached is not None else 0

    def run(self, batches: Iterable[pa.RecordBatch]) -> Generator[pa.RecordBatch]:
        """Join the batches and yield their rows in the order they came."""
        for chunk in self.chunks(iter(batches)):
            yield from self.joined(chunk)

    def fetch_ahead(self, keys: Sequence[Sequence[pa.Array]]) -> None:
        """Read what keys need that are not cached, before some of them come in chunks; in any thread.

        `keys` has the key columns of each of some batches. Nothing of a run may be under way.
        """
        codes, usable, _ = self._encoded(keys)
        self._look_up.fetch_ahead(codes, usable)

    def forget_ahead(self) -> None:
        """Drop what was read ahead."""
        self._look_up.forget_ahead()

    @property
    def read_seconds(self) -> tuple[float, float]:
        """How long the latest read waited for a disk or a server, and how long it worked."""
        return self._look_up.waited_seconds, self._look_up.worked_seconds

    def chunks(self, batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
        """Yield rows in groups that may be joined together, no larger than recent ones that could be answered at once.

        What is noted of each row counts, and so do the rows; but these lie in the batches of whoever calls, and are not
        copied, so that a piece whose rows are large is a group of its own.
        """
        chunk: list[pa.RecordBatch] = []
        held_bytes = row_count = 0
        for batch in batches:
            whole = conforming(batch, self._stream_schema)
            step = max(1, min(self._chunk_rows, self.sizes.chunk_bytes // CHUNK_ROW_BYTES))
            for start in range(0, whole.num_rows, step):
                piece = whole.slice(start, step)
                size_bytes = piece.nbytes + piece.num_rows * CHUNK_ROW_BYTES
                is_full = held_bytes + size_bytes > self.sizes.chunk_bytes
                if chunk and (is_full or row_count + piece.num_rows > self._chunk_rows):
                    yield chunk
                    chunk, held_bytes, row_count = [], 0, 0
                chunk.append(piece)
                held_bytes += size_bytes
                row_count += piece.num_rows
        if chunk:
            yield chunk

    def joined(self, chunk: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the output of a chunk, or of one part after the other if it needs too much memory."""
        codes, usable, nulls = self._encoded([self.key_columns(batch) for batch in chunk])
        keys = ChunkKeys(chunk, self.plan.stream_keys, self.store.codec) if self._look_up.needs_keys else None
        answers = self._look_up.answer(codes, usable, keys)
        count = len(codes)
        if isinstance(answers, TooManyRows):
            assert count > 1, "the rows of one code always fit"
            self._chunk_rows = max(1, min(count - 1, int(0.9 * count * answers.share)))
            del codes, usable
            for part in _parts(chunk, self._chunk_rows):
                yield from self.joined(part)
            return
        self._chunk_rows = min(self.sizes.chunk_rows, max(self._chunk_rows, 2 * count))
        self._count(count, nulls, usable)
        start = 0
        for batch in chunk:
            answered = _answered(batch, answers, start)
            self._refuse(answered, answers.largest_refused_bytes)
            if self.unmatched is not None:
                self.unmatched(batch, np.flatnonzero(answered.places == NOWHERE))
            yield from self._output.batches(answered, answers.rows)
            start += batch.num_rows
        self._look_up.learn(answers)

    def key_columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the columns of a batch in which the keys are."""
        return [batch.column(batch.schema.get_field_index(name)) for name in self.plan.stream_keys]

    def _encoded(self, keys: Sequence[Sequence[pa.Array]]) -> tuple[Int64Array, BoolArray | None, int]:
        """Return the codes of rows, which of them can have a match (None for all), and how many keys are null."""
        codes, masks, nulls = [], [], 0
        for columns in keys:
            encoded = self.store.codec.encode(columns)
            codes.append(encoded.codes)
            masks.append(encoded.usable)
            nulls += encoded.null_count
        usable = None
        if not self.store.page_count:
            usable = np.zeros(sum(map(len, codes)), dtype=np.bool_)
        elif any(mask is not None for mask in masks):
            filled = [np.ones(len(c), dtype=np.bool_) if m is None else m for c, m in zip(codes, masks, strict=True)]
            usable = np.concatenate(filled)
        return codes[0] if len(codes) == 1 else np.concatenate(codes), usable, nulls

    def _count(self, count: int, nulls: int, usable: BoolArray | None) -> None:
        stats = self._stats
        stats.tuples_in += count
        stats.tuples_out += count
        stats.null_keys += nulls
        if usable is not None:
            stats.absent += count - int(usable.sum()) - nulls

    def _refuse(self, answered: Answered, size_bytes: int) -> None:
        if answered.refused is None or not answered.refused.any():
            return
        largest_bytes = self.sizes.largest_page_bytes
        enough_bytes = self.store.index_bytes + PAGE_SHARE * size_bytes
        reason = too_large("The page of a master row", size_bytes, largest_bytes, enough_bytes)
        if self.dead_letters is None:
            raise RowTooLargeError(reason)
        rows = np.flatnonzero(answered.refused)
        sizes = RowSizes(self._stream_schema)
        for start, end in cuts(sizes.of(answered.batch, rows) + sizes.fixed_bytes, len(rows), self.sizes.piece_bytes):
            self.dead_letters(answered.batch.take(pa.array(rows[start:end])), reason)


def columns_and_sizes(
    store: MasterStore,
    plan: OutputPlan,
    budget: MemoryBudget,
    *,
    recipe: Recipe,
    values: Values,
    usual_bytes: int | None = None,
) -> tuple[pa.Schema, OrderedSizes]:
    """Return the master columns of a session and how it divides its memory, which is reserved; builds nothing."""
    check_keeps_order(recipe)
    names = plan.taken_columns(verify=not store.codec.exact)
    columns = pa.schema([store.schema.field(name) for name in names])
    cache_share = values[CACHE_SHARE] if values.is_given(CACHE_SHARE) else None
    return columns, ordered_sizes(store, budget, columns, cache_share=cache_share, usual_bytes=usual_bytes)


def check_keeps_order(recipe: Recipe, parameters: Mapping[str, float] | None = None) -> None:
    """Raise an error unless rows can leave a join by this recipe in the order they came, and parameters matter then."""
    if recipe.in_order is None:
        raise InvalidSettingError(
            f"{recipe.name} sends rows out as they are answered: set order to 'any', or choose demandjoin, "
            f"which can keep their order."
        )
    without_effect = sorted(set(parameters or {}) - recipe.in_order)
    if without_effect:
        raise InvalidSettingError(
            f"With order 'input' no row waits, so {', '.join(without_effect)} would have no effect: "
            f"leave it out, or set order to 'any'."
        )
    share = (parameters or {}).get(CACHE_SHARE.name)
    if share is not None and share > MAX_CACHE_SHARE:
        raise InvalidSettingError(
            f"With order 'input' {CACHE_SHARE.name} is at most {MAX_CACHE_SHARE}, but is {share:g}: "
            f"lower it, or set order to 'any'."
        )


def _answered(batch: pa.RecordBatch, answers: ChunkAnswers, start: int) -> Answered:
    end = start + batch.num_rows
    return Answered(
        batch,
        answers.places[start:end],
        answers.counts[start:end] if answers.counts is not None else None,
        answers.refused[start:end] if answers.refused is not None else None,
    )


def _parts(chunk: list[pa.RecordBatch], row_count: int) -> Iterator[list[pa.RecordBatch]]:
    """Yield the rows of a chunk in parts of so many rows at most."""
    for batch in chunk:
        for start in range(0, batch.num_rows, row_count):
            yield [batch.slice(start, row_count)]
