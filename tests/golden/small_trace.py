"""A master table of ten pages and a stream of sixty tuples, small enough to follow with a pencil.

Page p holds the keys 4p + 1 to 4p + 4, so key 17 is on page 4, key 3 on page 0, key 40 on page 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from semistream.algorithms.registry import ALGORITHMS
from semistream.algorithms.shared_parameters import READ_BYTES
from semistream.core.arrays import Float64Array, Int32Array, Int64Array
from semistream.core.budget import MemoryBudget
from semistream.core.clock import ModelClock
from semistream.core.costs import PAPERS
from semistream.core.stats import JoinStats
from semistream.engine.assembly import Assembly
from semistream.engine.cache.cache_stage import CacheStage
from semistream.engine.cache.page_stages import UsefulBlocks
from semistream.engine.cache.tuple_cache_stage import CachedTuples
from semistream.engine.parameters import Values, named
from semistream.engine.phases.stream_input import KeyInput
from semistream.engine.recipe import Recipe, Setting, TupleCaching
from semistream.engine.sizing.split import AsSuits, Bytes, Split
from semistream.engine.waiting.waiting_tuples import Drained, WaitingTuples
from semistream.policies.contract import Moment, PageChoice, Queue, Replacement
from semistream.store.counting import CountingStore
from semistream.store.memory import MemoryStore

# fmt: off
STREAM = [
    17, 3, 38, 18, 3, 9,      # positions 0 to 5: they fill a queue of six
    20, 2, 3, 40, 5, 3,       # 6 to 11
    25, 4, 17, 12, 3, 33,     # 12 to 17
    1, 19, 3, 29, 8, 2,       # 18 to 23
    3, 13, 37, 4, 22, 3,      # 24 to 29
    1, 3, 36, 17, 2, 11,
    3, 4, 28, 3, 31, 1,
    39, 3, 2, 6, 18, 3,
    1, 24, 3, 15, 4, 10,
    3, 2, 35, 1, 21, 3,
]
# fmt: on


def page_of(key: int) -> int:
    """Return the page of a key of the small master table."""
    return (key - 1) // 4


@dataclass
class Trace:
    """What an algorithm did."""

    reads: list[tuple[int, int]]
    """First and last page of each request, as the store saw them, with those before the first tuple."""
    served: list[tuple[int, int]]
    """The page group of each read of the disk phase and how many tuples it answered."""
    waiting: list[int]
    """How many tuples waited after each of these reads."""
    entered: list[int]
    """How many tuples had entered the queue when it came."""
    merges: bool
    """Reads bring runs of page groups."""
    answered: list[list[int]]
    """The stream positions that left with each read of the disk phase, in ascending order."""
    cached: list[list[int]]
    """The keys or page groups in the cache after each of these reads, slot by slot or in the order they entered."""
    overwritten: list[list[int]]
    """The slots of the cache that were overwritten, each time that it was full."""
    stats: JoinStats
    assembly: Assembly

    @property
    def pages(self) -> list[int]:
        """The pages read, where each read is of one page."""
        assert all(first == last for first, last in self.reads)
        return [first for first, _ in self.reads]


def run_trace(
    algorithm: str,
    keys: Sequence[int] = STREAM,
    *,
    slots: int = 6,
    master_rows: int = 40,
    parameters: Mapping[str, float] | None = None,
    arrivals: Sequence[float] | None = None,
    chunk_tuples: int | None = None,
    seed: int = 0,
    from_key: int = 0,
    **sizes: int,
) -> Trace:
    """Join bare keys on the model clock with four rows a page, one page a read, and as few slots as wanted.

    With `from_key` a read brings so many pages from that of its key on.
    """
    store = CountingStore(MemoryStore.of_codes(master_rows, row_bytes=100, page_bytes=400), log=True)
    watched: list[_Watched] = []
    overwritten: list[list[int]] = []
    recipe = _watching_replacement(_in_small_reads(ALGORITHMS[algorithm], watched, max(1, from_key)), overwritten)
    clock = ModelClock(PAPERS)
    assembly = Assembly(
        recipe,
        store,
        MemoryBudget("4MB"),
        clock,
        accounting="papers",
        seed=seed,
        parameters=parameters,
        partitions="from-key" if from_key else "aligned",
    )
    assembly.sizes = replace(assembly.sizes, **{"waiting_slots": slots, "holds_table": False, **sizes})
    loop, _ = assembly.start(KeyInput(_chunks(keys, arrivals, chunk_tuples), clock))
    choice = watched[0]
    choice.cache = assembly.cache
    answered = _watch_answers(loop.waiting)
    for number, _ in enumerate(loop.rounds()):
        loop.waiting._check()
        assert number < 20 * len(keys) + 1000, "the join goes round and round without an end"
    assert assembly.stats.tuples_in == assembly.stats.tuples_out == len(keys)
    assert store.log is not None
    return Trace(
        store.log,
        choice.served,
        choice.waiting,
        choice.entered,
        choice.merges,
        answered,
        choice.cached,
        overwritten,
        assembly.stats,
        assembly,
    )


def _in_small_reads(recipe: Recipe, watched: list[_Watched], pages: int) -> Recipe:
    def split(values: Values) -> Split:
        wanted = recipe.split(values)
        return replace(wanted, read=Bytes(400 * pages)) if isinstance(wanted.read, AsSuits) else wanted

    def page_choice(setting: Setting) -> PageChoice:
        watched.append(_Watched(recipe.page_choice(setting)))
        return watched[0]

    small = named(READ_BYTES.with_default(400 * pages)) if READ_BYTES.name in recipe.parameters else {}
    return replace(recipe, split=split, page_choice=page_choice, parameters={**recipe.parameters, **small})


def _watching_replacement(recipe: Recipe, overwritten: list[list[int]]) -> Recipe:
    caching = recipe.caching
    if not isinstance(caching, TupleCaching) or caching.replacement is None:
        return recipe
    made = caching.replacement
    return replace(recipe, caching=replace(caching, replacement=lambda setting: _Noted(made(setting), overwritten)))


def _watch_answers(waiting: WaitingTuples) -> list[list[int]]:
    """Write down which tuples leave the queue each time that some do."""
    drain, answered = waiting.drain, []

    def noted(page_groups: Int64Array) -> Drained:
        drained = drain(page_groups)
        answered.append(sorted(drained.references.tolist()))
        return drained

    waiting.drain = noted  # type: ignore[method-assign]
    return answered


def _chunks(keys: Sequence[int], arrivals: Sequence[float] | None, size: int | None) -> Any:
    codes = np.array(keys, dtype=np.int64)
    moments: Float64Array | None = None if arrivals is None else np.array(arrivals, dtype=np.float64)
    size = size or max(1, len(keys))
    for start in range(0, len(keys), size):
        yield codes[start : start + size], None if moments is None else moments[start : start + size]


class _Watched(PageChoice):
    """Passes everything on to a page choice and writes down what each read has served."""

    def __init__(self, inside: PageChoice) -> None:
        self.inside = inside
        self.declare_as(inside)
        self.served: list[tuple[int, int]] = []
        self.waiting: list[int] = []
        self.entered: list[int] = []
        self.cache: CacheStage | None = None
        self.cached: list[list[int]] = []

    def choose(self, queue: Queue, moment: Moment) -> Int64Array:
        return self.inside.choose(queue, moment)

    def following(self, reads: int) -> list[Int64Array]:
        return self.inside.following(reads)

    def after_read(self, page_group: int, matches: int, queue: Queue) -> None:
        self.served.append((page_group, matches))
        self.waiting.append(queue.count)
        self.entered.append(queue.entered)
        if isinstance(self.cache, CachedTuples):
            self.cached.append(self.cache.cache._codes[: self.cache.count].tolist())
        elif isinstance(self.cache, UsefulBlocks):
            self.cached.append(self.cache.resident.page_groups.tolist())
        self.inside.after_read(page_group, matches, queue)


class _Noted(Replacement):
    """Passes everything on to a replacement and writes down which slots it gives up."""

    def __init__(self, inside: Replacement, overwritten: list[list[int]]) -> None:
        self.inside = inside
        self.keeps_better = inside.keeps_better
        self._overwritten = overwritten

    def floor(self, frequencies: Int32Array) -> int:
        return self.inside.floor(frequencies)

    def renumbered(self) -> None:
        self.inside.renumbered()

    def victims(self, count: int, frequencies: Int32Array) -> Int64Array:
        chosen = self.inside.victims(count, frequencies)
        self._overwritten.append(chosen.tolist())
        return chosen
