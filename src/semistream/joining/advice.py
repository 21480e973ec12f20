"""Says how much of a stream each amount of memory would answer without a read, from a sample of the stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from semistream.algorithms.registry import DEFAULT_ALGORITHM, algorithm_named
from semistream.core.arrays import Int64Array
from semistream.core.budget import MemoryBudget
from semistream.core.errors import InvalidSettingError, UnknownColumnError
from semistream.core.stats import JoinStats
from semistream.engine.cache.cache_stage import NO_PAGE_GROUPS, CacheStage
from semistream.engine.output.output_plan import plan_output
from semistream.engine.reading.misses import Misses
from semistream.engine.sizing.ordered_sizes import CHUNK_ROW_BYTES
from semistream.joining.batches import On, join, key_pairs
from semistream.joining.ordered_cache import new_ordered_cache
from semistream.joining.ordered_session import columns_and_sizes
from semistream.policies.caching.key_popularity import KeyPopularity
from semistream.store.contract import MasterStore
from semistream.store.tables import TableAddress, table_at

MEMORIES = ("16MB", "64MB", "256MB")
MIN_SAMPLE_ROWS = 1_000
BATCH_ROWS = 50_000
"""The rows of a task in a micro-batch, unless the caller knows better."""
_MIN_WARM_ROWS = 2_000_000
_WARM_FILLS = 16
"""A cache counts as warm after so many times as many rows as it holds; from then on it gains little."""
_LOOKED_UP_ROWS = 20_000
_NO_COLUMNS = pa.schema([])


@dataclass(frozen=True)
class Advice:
    """What a join of a stream like the sample would do with some memory."""

    memory_bytes: int
    cached_rows: int
    """How many master rows the cache holds."""
    hit_rate: float
    """The share of stream rows that the cache answers once it is warm."""
    warm_rows: int
    """How many rows a worker has had by then."""
    first_hit_rate: float
    """The share of a worker's first `first_rows` rows that the cache answers, from an empty cache on."""
    first_rows: int
    sampled_rate: float
    """The share of the stream whose keys occur often in the sample; the lower, the more is extrapolated."""


def advise(
    sample: pa.Table,
    master: MasterStore | TableAddress,
    *,
    on: On,
    columns: Sequence[str] | None = None,
    memory: Sequence[int | str] = MEMORIES,
    rows: int = 1_000_000,
    batch_rows: int = BATCH_ROWS,
    progress: Callable[[int, int], None] | None = None,
    seed: int = 0,
) -> list[Advice]:
    """Predict how much of a stream `enrich` answers from its cache with each memory.

    The sample, of which only the key columns are needed, tells how often keys are asked for; what it is too short to
    tell is fitted to it. A stream that is drawn from these frequencies then goes through the cache that `enrich` would
    have for `columns` of the master table. Some rows of the sample are looked up, to know how many keys the table has.
    `rows` is the length of the start for which the hit rate is given besides that of a warm cache. It counts the rows
    of one worker: if eight workers share a stream, each has its first million rows after eight million. `batch_rows`
    is how many rows a task has in a micro-batch: the cache learns from rows that are joined together only afterwards.
    """
    store = master if isinstance(master, MasterStore) else table_at(master).open()
    pairs = key_pairs(on, store)
    keys = _keys_of(sample, [ours for ours, _ in pairs], store)
    counts = _counts(keys, store)
    if not len(counts):
        raise InvalidSettingError("No row of the sample has a key that could be in the master table: check `on`.")
    popularity = KeyPopularity.from_counts(counts, store.row_count)
    answerable = counts.sum() / keys.num_rows * _present_rate(keys, store, pairs, seed)
    recipe = algorithm_named(DEFAULT_ALGORITHM)
    values = recipe.values(None)
    plan = plan_output(keys.schema, store.schema, pairs, how="left", columns=columns, suffix="_of_master")
    budgets = [MemoryBudget(size) for size in memory]
    sizes = [columns_and_sizes(store, plan, budget, recipe=recipe, values=values)[1] for budget in budgets]
    wanted = [max(_MIN_WARM_ROWS, rows, _WARM_FILLS * each.cache_tuples) for each in sizes]
    row_bytes = 2 * keys.nbytes // keys.num_rows
    advice, done = [], 0
    for budget, each, row_count in zip(budgets, sizes, wanted, strict=True):
        cache = new_ordered_cache(store, recipe, values, each, _NO_COLUMNS, JoinStats(), seed)
        chunk_rows = max(1, min(batch_rows, each.chunk_bytes // (CHUNK_ROW_BYTES + row_bytes)))
        rates: list[float] = []
        for codes in popularity.draw(batch_rows, seed):
            chunks = np.split(codes, range(chunk_rows, len(codes), chunk_rows))
            hits = sum(_hits(cache, chunk) for chunk in chunks) if cache is not None else 0
            rates.append(answerable * hits / len(codes))
            done += len(codes)
            if progress is not None:
                progress(min(done, sum(wanted)), sum(wanted))
            if len(rates) * batch_rows >= row_count:
                break
        first, warm = rates[: max(1, rows // batch_rows)], rates[-max(1, len(rates) // 4) :]
        advice.append(
            Advice(
                memory_bytes=budget.total_bytes,
                cached_rows=each.cache_tuples,
                hit_rate=float(np.mean(warm)),
                warm_rows=(len(rates) - len(warm)) * batch_rows,
                first_hit_rate=float(np.mean(first)),
                first_rows=len(first) * batch_rows,
                sampled_rate=popularity.known_share,
            )
        )
    return advice


def _keys_of(sample: pa.Table, names: Sequence[str], store: MasterStore) -> pa.Table:
    missing = [name for name in names if name not in sample.column_names]
    if missing:
        raise UnknownColumnError(
            f"The sample has no column {', '.join(missing)}: its columns are {', '.join(sample.column_names)}."
        )
    if sample.num_rows < MIN_SAMPLE_ROWS:
        raise InvalidSettingError(
            f"A sample of {sample.num_rows:,} rows is too small: give at least {MIN_SAMPLE_ROWS:,}."
        )
    keys = sample.select(list(names)).combine_chunks()
    store.codec.check(tuple(names), [field.type for field in keys.schema])
    return keys


def _counts(keys: pa.Table, store: MasterStore) -> Int64Array:
    """Return how often each key occurs that the master table could have."""
    codes = []
    for batch in keys.to_batches():
        encoded = store.codec.encode(batch.columns)
        codes.append(encoded.codes if encoded.usable is None else encoded.codes[encoded.usable])
    counts: Int64Array = np.unique(np.concatenate(codes), return_counts=True)[1].astype(np.int64)
    return counts


def _present_rate(keys: pa.Table, store: MasterStore, pairs: Sequence[tuple[str, str]], seed: int) -> float:
    """Return the share of rows with a usable key that have a match, by looking some of them up."""
    chosen = np.random.default_rng(seed).integers(0, keys.num_rows, _LOOKED_UP_ROWS)
    joined = join(keys.take(pa.array(chosen)), store, on=dict(pairs), how="semi")
    joined.read_all()
    stats = joined.stats
    present = stats.cache_hits + stats.read_hits
    return present / max(1, present + stats.absent)


def _hits(cache: CacheStage, codes: Int64Array) -> int:
    """Let a chunk of keys go through the cache as a join would; return how many of them it answers."""
    hits = 0
    missing = np.arange(len(codes))
    is_probed = cache.decide_to_look()
    if is_probed:
        slots = cache.probe(codes, NO_PAGE_GROUPS)
        missing = np.flatnonzero(slots < 0)
        hits = len(codes) - len(missing)
        cache.count_use(slots[slots >= 0].astype(np.int64))
    misses = Misses.of(codes, missing)
    cache.learn(misses.codes, misses.asks.astype(np.int32), np.ones(len(misses.codes), dtype=np.int64), _bare)
    if is_probed:
        cache.arrived(len(codes))
    return hits


def _bare(places: Int64Array) -> Iterator[tuple[Int64Array, None]]:
    yield places, None
