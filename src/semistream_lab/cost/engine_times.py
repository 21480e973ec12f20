"""What the operations of one algorithm cost in the engine, on a store and in the very sizes that a run uses."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.core.budget import MemoryBudget
from semistream.core.clock import WallClock
from semistream.core.costs import SSD, CostProfile
from semistream.engine.assembly import Assembly
from semistream.engine.cache.cache_stage import NO_PAGE_GROUPS, CacheStage
from semistream.engine.phases.arrivals import split_arrivals
from semistream.engine.phases.stream_input import Chunk
from semistream.engine.reading.matching import match
from semistream.engine.recipe import BlockCaching, PagePinning, Recipe, Setting
from semistream.engine.waiting.waiting_tuples import WaitingTuples
from semistream.generator import KeySource
from semistream.policies.contract import Moment
from semistream.store.contract import MasterStore
from semistream_lab.cost.bare_rounds import BareRounds

_STEPS_AT_ONCE = 4
_FREQUENT_FIRST_PAGE = 1.0
_NOT_IN_ROUNDS = ("demandjoin", "oracle")


@dataclass
class _Part:
    """The time of one part of a round: calls with many tuples, and calls with a single one."""

    seconds: float = 0.0
    calls: int = 0
    tuples: int = 0
    single_seconds: float = 0.0
    single_calls: int = 0

    def add(self, seconds: float, tuples: int, calls: int = 1) -> None:
        self.seconds += seconds
        self.calls += calls
        self.tuples += tuples

    def add_single(self, seconds: float) -> None:
        self.single_seconds += seconds
        self.single_calls += 1

    @property
    def per_tuple(self) -> float:
        """The time that each further tuple takes; that of the call itself belongs to the round."""
        single = self.single_seconds / max(1, self.single_calls)
        return max(0.0, self.seconds - self.calls * single) / max(1, self.tuples)


@dataclass
class _Parts:
    read: _Part = field(default_factory=_Part)
    chunk: _Part = field(default_factory=_Part)
    probe: _Part = field(default_factory=_Part)
    append: _Part = field(default_factory=_Part)
    leave: _Part = field(default_factory=_Part)
    learn: _Part = field(default_factory=_Part)


class EngineTimes:
    """Times the operations of an algorithm apart from each other, slice by slice, beside a run of it.

    Each step reads what the page choice of the recipe wants, takes the tuples that wait for it out of a queue of the
    run's size, looks them up in the pages, and lets others enter; every operation is timed by itself. What the loop
    takes around them is timed on rounds with next to nothing to do (`BareRounds`). How many tuples a read serves plays
    no part in the costs: that is the model's to say. All times are means, because the seconds of a run are a sum.
    """

    def __init__(
        self,
        recipe: Recipe,
        store: MasterStore,
        keys: KeySource,
        *,
        memory: int,
        accounting: str = "real",
        parameters: Mapping[str, float] | None = None,
        seed: int = 0,
    ) -> None:
        budget = MemoryBudget(memory)
        assembly = Assembly(recipe, store, budget, WallClock(), accounting=accounting, seed=seed, parameters=parameters)
        self._reader = assembly.reader
        self._keys = keys
        self._chunk_rows = assembly.sizes.chunk_rows
        setting = _setting(store, assembly, seed)
        self._choice = recipe.page_choice(setting)
        self._intake = recipe.intake(setting)
        self._waiting = WaitingTuples(
            setting.page_group_count,
            assembly.sizes.waiting_slots,
            positions=self._choice.needs_positions,
            youngest=self._choice.needs_youngest,
            since=self._choice.needs_since,
        )
        self._single = WaitingTuples(setting.page_group_count, assembly.sizes.waiting_slots)
        cache = assembly.shared_cache()
        if cache is not None:
            cache.load(self._reader)
        self._on_arrival = cache if cache is not None and cache.probes_on_arrival else None
        self._in_rounds = cache if cache is not None and not cache.probes_on_arrival else None
        self._learns = self._on_arrival is not None and self._on_arrival.counts_frequencies
        self._hit_rate = 0.0
        self._parts = _Parts()
        self._chunk = self._next_chunk(0)
        self._used = 0
        self._bare = BareRounds(recipe)
        pins = isinstance(recipe.caching, PagePinning)
        self._pinned = BareRounds(recipe, exponent=_FREQUENT_FIRST_PAGE) if pins else None
        self._bare_made = 0
        self._fill()
        self._parts = _Parts()

    def measure(self, seconds: float) -> None:
        """Time all operations for about so long, a few times at least."""
        ends = time.perf_counter() + seconds
        while True:
            for step in range(_STEPS_AT_ONCE):
                # About as busy between two reads as a join is: on a shared machine reads take longer then.
                if step % 2:
                    self._make_bare_round()
                self._step(single=step == 0)
            if time.perf_counter() >= ends:
                break

    def profile(self, name: str = "in use") -> CostProfile:
        """Return the costs so far; of a read at the size in use all is told as latency."""
        parts = self._parts
        per_tuple = parts.chunk.per_tuple + parts.append.per_tuple + parts.leave.per_tuple + parts.probe.per_tuple
        round_seconds = self._bare.seconds_per_round - self._bare.tuples_per_round * per_tuple
        answer_seconds = 0.0
        if self._pinned is not None:
            with_answer = self._pinned.seconds_per_round - self._pinned.tuples_per_round * per_tuple
            answer_seconds = max(0.0, with_answer - round_seconds)
        read_seconds = parts.read.seconds / max(1, parts.read.tuples)
        return CostProfile(
            name=name,
            seek_seconds=read_seconds,
            request_seconds=read_seconds,
            bytes_per_second=float("inf"),
            probe_seconds=parts.probe.per_tuple,
            output_seconds=0.0,  # bare keys have no rows to put out
            remove_seconds=parts.leave.per_tuple,
            take_seconds=parts.chunk.per_tuple,
            append_seconds=parts.append.per_tuple,
            frequency_seconds=parts.learn.per_tuple,
            hand_over_seconds=0.0,
            round_seconds=max(0.0, round_seconds),
            answer_seconds=answer_seconds,
            row_seconds=0.0,
        )

    def _make_bare_round(self) -> None:
        """Make a round with next to nothing to do; where pages are pinned, in turn one with and one without answers."""
        self._bare_made += 1
        rounds = self._bare if self._pinned is None or self._bare_made % 2 else self._pinned
        rounds.make_one()

    def _step(self, *, single: bool) -> None:
        """Read once, let tuples leave and others enter."""
        parts, now = self._parts, time.perf_counter
        if self._in_rounds is not None:
            began = now()
            answered = self._in_rounds.answer_waiting(self._waiting)
            for drained, pages in answered:
                match(pages.codes, pages.bounds, drained.codes, drained.bounds)
            parts.leave.add(now() - began, sum(len(drained.codes) for drained, _ in answered), calls=len(answered))
        page_groups = self._choice.choose(self._waiting, Moment(input_pending=True))
        began = now()
        pages = self._reader.read(page_groups, sequential=self._choice.sequential)
        read = now()
        drained = self._waiting.drain(page_groups)
        rows, _ = match(pages.codes, pages.bounds, drained.codes, drained.bounds)
        left = now()
        parts.read.add(read - began, len(page_groups))
        parts.leave.add(left - read, len(drained.codes))
        if self._learns and self._on_arrival is not None:
            self._on_arrival.after_read(page_groups, pages, drained, rows, self._waiting)
            parts.learn.add(now() - left, len(pages.codes))
        if single:
            self._one_tuple(pages.codes, int(page_groups[0]))
        self._refill()

    def _one_tuple(self, page_codes: Int64Array, page_group: int) -> None:
        """Time what the calls take with one tuple."""
        parts, now = self._parts, time.perf_counter
        code, wanted = page_codes[:1], np.array([page_group], dtype=np.int64)
        page_groups, reference = wanted.astype(np.int32), wanted
        began = now()
        self._single.add(code, page_groups, reference)
        added = now()
        drained = self._single.drain(wanted)
        match(page_codes, np.array([0, len(page_codes)]), drained.codes, drained.bounds)
        parts.leave.add_single(now() - added)
        parts.append.add_single(added - began)
        if self._on_arrival is not None:
            began = now()
            self._probed(self._on_arrival, code, reference, 1)
            parts.probe.add_single(now() - began)

    def _fill(self) -> None:
        """Fill the queue, and let it be used for a while."""
        for _ in range(50):
            if self._intake.room(self._waiting, 0) <= 0:
                break
            self._refill()
        for _ in range(20):
            self._step(single=False)

    def _refill(self) -> None:
        """Let tuples enter until there is no room."""
        taken = 0
        while (room := self._intake.room(self._waiting, taken)) > 0:
            if self._used >= len(self._chunk.codes):
                began = time.perf_counter()
                self._chunk, self._used = self._next_chunk(self._chunk.first_position + self._used), 0
                self._parts.chunk.add(time.perf_counter() - began, len(self._chunk.codes))
            taken += self._enter(room)

    def _enter(self, room: int) -> int:
        """Let tuples of the chunk enter or be answered, and return how many."""
        chunk, cache, parts = self._chunk, self._on_arrival, self._parts
        wanted = room if cache is None else int(room / max(0.02, 1.0 - self._hit_rate) * 1.05) + 16
        end = min(len(chunk.codes), self._used + wanted)
        codes, rows = chunk.codes[self._used : end], chunk.rows[self._used : end]
        began = time.perf_counter()
        consumed = len(codes)
        if cache is not None:
            misses, consumed = self._probed(cache, codes, rows, room)
            self._hit_rate += (1 - len(misses) / consumed - self._hit_rate) * 0.2
            probed = time.perf_counter()
            parts.probe.add(probed - began, consumed)
            began = probed
            codes, rows = codes[misses], rows[misses]
        if len(codes):
            self._waiting.add(codes, self._reader.locate(codes), rows + chunk.first_position)
            parts.append.add(time.perf_counter() - began, len(codes))
        self._used += consumed
        return consumed

    def _probed(self, cache: CacheStage, codes: Int64Array, rows: Int64Array, room: int) -> tuple[Int64Array, int]:
        """Return which tuples the cache does not answer, and how many of them have a place."""
        slots = cache.probe(codes, self._reader.locate(codes) if cache.needs_page_groups else NO_PAGE_GROUPS)
        hits, answered, misses, consumed = split_arrivals(slots, room, float("inf"), 0.0, 0.0)
        if len(hits):
            cache.answer(codes, self._chunk, rows, hits, answered, None)
        return misses, consumed

    def _next_chunk(self, first_position: int) -> Chunk:
        codes = self._keys.draw(self._chunk_rows)
        rows = np.arange(len(codes), dtype=np.int64)
        return Chunk(first_position & 0x7FFFFFFF, codes, rows, None)


def can_be_timed(recipe: Recipe) -> bool:
    """Say whether the operations of an algorithm can be timed one by one: not if they run side by side or in runs."""
    return not (recipe.side_by_side or isinstance(recipe.caching, BlockCaching) or recipe.name in _NOT_IN_ROUNDS)


def _setting(store: MasterStore, assembly: Assembly, seed: int) -> Setting:
    sizes = assembly.sizes
    page_bytes = store.size_bytes / store.page_count
    return Setting(
        page_group_count=assembly.reader.page_group_count,
        waiting_slots=sizes.waiting_slots,
        row_count=store.row_count,
        seed=seed,
        values=assembly.values,
        costs=SSD,
        page_group_bytes=page_bytes * sizes.pages_per_read,
        run_page_groups=sizes.run_page_groups,
        cache_tuples=sizes.cache_tuples,
    )
