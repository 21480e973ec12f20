"""The disk phase: page groups are read, and the tuples that wait for them leave."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.core.costs import Operations
from semistream.engine.loop_parts import LoopParts
from semistream.engine.reading.matching import match
from semistream.engine.reading.read_ahead import ReadAhead
from semistream.engine.waiting.deadline import Deadline
from semistream.engine.waiting.staying_tuples import StayingTuples
from semistream.engine.waiting.waiting_tuples import Drained
from semistream.engine.waiting.waits import Waits
from semistream.policies.contract import Moment
from semistream.store.contract import PageSet

_NONE = np.empty(0, dtype=np.int64)
_PENDING, _ENDED = Moment(input_pending=True), Moment(input_pending=False)


class DiskPhase:
    """Reads what the page choice wants, and lets all tuples leave that wait for it.

    A tuple whose page group has been read leaves whether or not it has matched, so an absent key never asks twice.
    `poll_pending` is asked whether more input may come, and `input_fill` how much of it was there, whenever the page
    choice needs to know.
    """

    def __init__(
        self,
        parts: LoopParts,
        ahead: ReadAhead,
        waits: Waits,
        *,
        poll_pending: Callable[[], bool],
        input_fill: Callable[[], int] | None = None,
        staying: StayingTuples | None = None,
    ) -> None:
        self._staying = staying
        self._waiting = parts.waiting
        self._stats = parts.stats
        self._clock = parts.clock
        self._reader = parts.reader
        self._ahead = ahead
        self._waits = waits
        self._poll_pending = poll_pending
        self._input_fill = input_fill if parts.choice.needs_input_fill else None
        self._choice = parts.choice
        self._merges = parts.choice.merges
        self._buffers = parts.choice.buffers
        self._buffer = -1
        """Which of several buffers the last choice was for."""
        self._intake = parts.intake
        self._cache = parts.cache
        self._output = parts.output
        self._balance = parts.balance
        self._read_costs = parts.read_costs
        self._finish_bytes = parts.finish_bytes
        self._finishing = 0
        self._run_bytes = parts.run_bytes
        self._runs: deque[Int64Array] = deque()
        """What the page choice has chosen and is yet to be read."""
        deadline_seconds = parts.choice.deadline_seconds
        self._deadline = Deadline(deadline_seconds, parts.waiting, parts.clock) if deadline_seconds else None

    @property
    def tuple_count(self) -> int:
        """The tuples that wait, or are about to be answered."""
        return self._waiting.count + self._finishing

    @property
    def is_loading(self) -> bool:
        """Whether a buffer is being loaded."""
        return self._ahead.is_loading

    @property
    def finishes_by_demand(self) -> bool:
        """Whether what waits when the input has ended is not left to the page choice."""
        return self._finish_bytes > 0

    def load_cache(self) -> None:
        """Read what must be in memory before the first tuple comes."""
        if self._cache is not None and not self._cache.loaded:
            self._cache.load(self._reader)
            self._cache.loaded = True

    def read_beside(self, *, begins: bool = True) -> None:
        """Do a round beside the stream phase, with as many buffers as the page choice has.

        With several, a page group is loaded into each buffer that is free, unless no more loads are to begin, and the
        first one that has come is probed.
        """
        if self._buffers == 1:
            self.read_round()
            return
        ahead, waiting = self._ahead, self._waiting
        for buffer in ahead.free_buffers() if begins else ():
            if waiting.count:
                moment = Moment(self._poll_pending(), buffer=buffer, loading=ahead.loading())
                chosen = self._choice.choose(waiting, moment)
                if len(chosen):
                    ahead.load(buffer, chosen)
        began = time.perf_counter()
        loaded = ahead.first_loaded()
        self._stats.read_seconds += time.perf_counter() - began
        if loaded is not None:
            self._probe(*loaded)
            ahead.end_join()

    def read_round(self) -> bool:
        """Answer waiting tuples from pinned pages, then by one read if the page choice wants one.

        Returns whether tuples wait and it wants none, so that input must come first.
        """
        self._answer_from_pinned()
        page_groups = _NONE
        if self._waiting.count:
            if self._deadline is not None:
                self._deadline.note()
            page_groups = self._runs.popleft() if self._runs else self._choose()
            if self._merges:
                self._read_runs(page_groups)
            elif self._is_readable(page_groups):
                began = time.perf_counter()
                pages = self._reader.read(page_groups, sequential=self._choice.sequential)
                self._stats.read_seconds += time.perf_counter() - began
                self._probe(page_groups, pages)
        self._end_round()
        return not len(page_groups) and self._waiting.count > 0

    def finish(self) -> Iterator[None]:
        """Answer all that wait and may not stay, by reads of just the pages that they need, and yield after each."""
        self._answer_from_pinned()
        self._runs.clear()
        page_groups = np.flatnonzero(self._waiting.counts)
        self._finishing = self._waiting.count
        drained = self._waiting.drain(page_groups)
        if self._staying is not None:
            waiting_count = len(drained.codes)
            drained = self._staying.keep(page_groups, drained)
            self._waits.stay(waiting_count - len(drained.codes))
            self._finishing = len(drained.codes)
        demanded = self._reader.read_demanded(drained, self._finish_bytes, across=self._merges)
        while True:
            began = time.perf_counter()
            brought = next(demanded, None)
            self._stats.read_seconds += time.perf_counter() - began
            if brought is None:
                break
            page_groups, pages, needing = brought
            self._join_pages(page_groups, pages, needing, whole=False)
            self._finishing -= len(needing.codes)
            del brought, pages  # so that the next read has its memory
            yield
        self._end_round()

    def _choose(self) -> Int64Array:
        is_pending = self._poll_pending()
        if self._input_fill is not None:
            return self._choice.choose(self._waiting, Moment(is_pending, input_fill=self._input_fill()))
        if self._deadline is None and self._buffers == 1:
            return self._choice.choose(self._waiting, _PENDING if is_pending else _ENDED)
        overdue_before = self._deadline.overdue_before() if self._deadline is not None else 0
        self._buffer = (self._buffer + 1) % self._buffers
        return self._choice.choose(self._waiting, Moment(is_pending, overdue_before, self._buffer))

    def _end_round(self) -> None:
        if self._balance is not None:
            self._balance.after_round()
        if not self._waiting.count and self._cache is not None:
            self._cache.after_batch(self._waiting)

    def _read_runs(self, page_groups: Int64Array) -> None:
        """Read runs of page groups, but for those that are too large to read, for which no tuple waits.

        If they are more than a read may bring, only the first of them; the others are read in the next rounds.
        """
        first, *later = self._cut_run(page_groups)
        self._runs.extend(later)
        if len(first):
            self._read_run(first)

    def _cut_run(self, page_groups: Int64Array) -> list[Int64Array]:
        unreadable = self._reader.page_groups.unreadable(page_groups)
        if unreadable is not None:
            page_groups = page_groups[~unreadable]
        return self._reader.page_groups.within(page_groups, self._run_bytes) if self._run_bytes else [page_groups]

    def _read_run(self, page_groups: Int64Array) -> None:
        following = list(self._runs)
        if len(following) < self._ahead.reads:
            planned = self._choice.following(self._ahead.reads)
            following += [part for run in planned for part in self._cut_run(run) if len(part)]
        began = time.perf_counter()
        pages, starts = self._ahead.read(page_groups, following[: self._ahead.reads])
        self._stats.read_seconds += time.perf_counter() - began
        if self._deadline is not None:
            count, longest_seconds = self._deadline.waits_of(page_groups)
            self._intake.answered(count, longest_seconds, self._waiting)
        drained = self._waiting.drain(page_groups)
        by_run = Drained(drained.codes, drained.references, drained.bounds[np.append(starts, len(page_groups))])
        self._join_pages(page_groups[starts], pages, by_run, whole=False)
        if self._read_costs is not None:
            request_seconds, byte_seconds = self._read_costs.costs
            self._choice.learn_costs(request_seconds, byte_seconds * self._reader.mean_page_group_bytes)

    def _is_readable(self, page_groups: Int64Array) -> bool:
        """Say whether there is something to read; only a ring ever asks for what is too large to read."""
        unreadable = self._reader.page_groups.unreadable(page_groups)
        return len(page_groups) > 0 and (unreadable is None or not unreadable.any())

    def _answer_from_pinned(self) -> None:
        if self._cache is None or self._cache.probes_on_arrival:
            return
        self._clock.charge(Operations(probes=self._cache.probed_rows()))
        for drained, pages in self._cache.answer_waiting(self._waiting):
            self._answer(drained, pages, from_cache=True)

    def _probe(self, page_groups: Int64Array, pages: PageSet) -> None:
        """Join pages with all tuples that wait for them."""
        self._join_pages(page_groups, pages, self._waiting.drain(page_groups), whole=True)

    def _join_pages(self, page_groups: Int64Array, pages: PageSet, drained: Drained, *, whole: bool) -> None:
        cache, probed = self._cache, len(pages.codes)
        counted = cache is not None and cache.counts_frequencies
        self._clock.charge(Operations(probes=probed, frequency_checks=probed if counted else 0))
        rows = self._answer(drained, pages, from_cache=False)
        if cache is not None:
            with cache.guard:
                cache.after_read(page_groups, pages, drained, rows, self._waiting, whole=whole)
        if whole:
            bounds = drained.bounds.tolist()
            for index, page_group in enumerate(page_groups.tolist()):
                self._choice.after_read(page_group, bounds[index + 1] - bounds[index], self._waiting)
        self._stats.iterations += 1

    def _answer(self, drained: Drained, pages: PageSet, *, from_cache: bool) -> Int64Array:
        count, waits = len(drained.codes), self._waits
        rows, match_count = match(pages.codes, pages.bounds, drained.codes, drained.bounds)
        self._clock.charge(Operations(outputs=count, removals=count))
        if from_cache:
            self._stats.cache_hits += match_count
        else:
            self._stats.read_hits += match_count
        if count:
            starts = drained.bounds[:-1]
            firsts = drained.references[starts[starts < drained.bounds[1:]] if len(starts) > 1 else starts]
            waits.oldest_left(waits.first_position(firsts))
            waits.leave(count, absent=count - match_count)
            if self._waiting.count:
                waits.forget_before(waits.first_position(np.array([self._waiting.oldest_reference()])))
            if self._output is not None:
                self._output.answered(drained.references, pages, rows)
        return rows
