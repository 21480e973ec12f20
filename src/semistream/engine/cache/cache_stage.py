"""What every way to answer stream tuples from master data in memory must offer, as a stage of the loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int32Array, Int64Array
from semistream.core.stats import JoinStats
from semistream.engine.cache.hot_rows import HotRows
from semistream.engine.output.output import Output
from semistream.engine.phases.stream_input import Chunk
from semistream.engine.reading.group_reader import PageGroupReader
from semistream.engine.rows.slot_rows import SlotRows
from semistream.engine.waiting.waiting_tuples import Drained, WaitingTuples
from semistream.policies.contract import Queue
from semistream.store.contract import PageSet

NO_PAGE_GROUPS = np.empty(0, dtype=np.int32)
"""For a stage that does not need those of the tuples."""
_HOLDS_PAGES = "this stage holds pages"


class ResizableCache(Protocol):
    """A cache of single tuples, of which it may hold more or fewer while the join runs."""

    at_look: Callable[[int], None] | None
    """Called after some windows of tuples with their number, while the cache answers a settled share of them."""

    @property
    def guard(self) -> AbstractContextManager[Any]:
        """The lock that must be held by `resize`."""

    @property
    def count(self) -> int:
        """How many entries it has."""

    @property
    def capacity(self) -> int:
        """How many entries it can have."""

    @property
    def is_sampled(self) -> bool:
        """Whether it is known to answer next to nothing, and only some tuples and reads come to it for that."""

    def uses_by_rank(self) -> Int64Array:
        """Return how often entries were used in this window, those first that were worth most before it."""

    def resize(self, capacity: int) -> None:
        """Let it hold another number of tuples."""


class CacheStage(ABC):
    """Answers tuples without a read.

    `probe` and `answer` come from the thread that takes tuples in, `after_read` from the one that reads; `guard` is
    held around each of them.
    """

    probes_on_arrival = True
    counts_frequencies = False
    """Each row of a page group read costs a look at its frequency (c_F)."""
    answers_by_code = False
    """Whether key codes alone lead to answers, so that `count_use`, `is_absent`, `rows` and `learn` may be called."""
    loaded = False
    """Whether `load` has been called; a stage may serve several runs of a join, one after the other."""

    @property
    def is_sampled(self) -> bool:
        """Whether it is known to answer next to nothing, and only some tuples and reads come to it for that."""
        return False

    @property
    def guard(self) -> AbstractContextManager[Any]:
        """The lock, if two threads use the stage."""
        return nullcontext()

    @abstractmethod
    def load(self, reader: PageGroupReader) -> None:
        """Read what must be in memory before the first tuple comes."""

    def decide_to_look(self) -> bool:
        """Decide whether to probe the next tuples; if not, all of them wait."""
        return self.probes_on_arrival

    @property
    def needs_page_groups(self) -> bool:
        """Whether `probe` goes by the page groups of tuples, so that they have to be found first."""
        return True

    def probe(self, codes: Int64Array, page_groups: Int32Array) -> Int32Array:  # noqa: ARG002
        """Return for each tuple where its answer is, or -1."""
        raise AssertionError("this stage does not probe on arrival")

    def answerable(self, slots: Int64Array, each_bytes: Int64Array | int, limit_bytes: float) -> int:  # noqa: ARG002
        """Return how many of the first slots can be answered so that rows of `limit_bytes` are made, at least one.

        A row takes `each_bytes` besides what a variable column adds. Answers from pages are made when there is room.
        """
        return len(slots)

    def answer(
        self,
        codes: Int64Array,  # noqa: ARG002
        chunk: Chunk,  # noqa: ARG002
        rows: Int64Array,  # noqa: ARG002
        hits: Int64Array,  # noqa: ARG002
        slots: Int64Array,  # noqa: ARG002
        output: Output | None,  # noqa: ARG002
    ) -> int:
        """Hand the answers of the tuples at `hits`, which have these slots, to the output.

        Returns how many of them are absent.
        """
        raise AssertionError("this stage does not probe on arrival")

    def arrived(self, count: int, missed: Int32Array = NO_PAGE_GROUPS) -> None:  # noqa: B027
        """Learn that so many tuples have been probed and are answered or wait now; these page groups were `missed`."""

    def answer_waiting(self, waiting: WaitingTuples) -> list[tuple[Drained, PageSet]]:  # noqa: ARG002
        """Take the waiting tuples that can be answered now, with the pages that answer them."""
        return []

    def probed_rows(self) -> int:
        """Return how many master rows `answer_waiting` looks up in the waiting tuples."""
        return 0

    def after_read(  # noqa: B027
        self,
        page_groups: Int64Array,
        pages: PageSet,
        drained: Drained,
        rows: Int64Array,
        queue: Queue,
        *,
        whole: bool = True,
    ) -> None:
        """Learn what a read has brought; `rows` has for each drained tuple its row in `pages`, or -1.

        `page_groups` has the page group of each range of `pages`; the ranges are `whole` page groups or parts of them.
        """

    def after_batch(self, waiting: WaitingTuples) -> None:  # noqa: B027
        """Called whenever no tuple waits."""

    def count_in(self, stats: JoinStats) -> None:  # noqa: B027
        """Count in other statistics from now on."""

    def count_use(self, slots: Int64Array) -> int:  # noqa: ARG002
        """Count tuples that the slots answer; return how many of these stand for absent keys."""
        raise AssertionError(_HOLDS_PAGES)

    def is_absent(self, slots: Int64Array) -> BoolArray:  # noqa: ARG002
        """Say for each slot whether it stands for a key that the master table does not have."""
        raise AssertionError(_HOLDS_PAGES)

    def learn(
        self,
        codes: Int64Array,  # noqa: ARG002
        asks: Int32Array,  # noqa: ARG002
        row_counts: Int64Array,  # noqa: ARG002
        take: Callable[[Int64Array], Iterator[tuple[Int64Array, pa.RecordBatch | None]]],  # noqa: ARG002
        take_absent: Callable[[Int64Array], Iterator[tuple[Int64Array, pa.RecordBatch]]] | None = None,  # noqa: ARG002
    ) -> None:
        """Learn from a look-up of distinct codes, each asked for so often and each with so many rows.

        `take` yields the codes at some places, which have one row each, piece by piece with their cached columns, and
        `take_absent` those that have none with rows of their keys alone, if it has to be known which keys are absent.
        """
        raise AssertionError(_HOLDS_PAGES)

    @property
    def resizable(self) -> ResizableCache | None:
        """The stage itself, if memory can move between its tuples and those that wait."""
        return None

    @property
    def rows(self) -> SlotRows | None:
        """The cached columns of all slots; None if there are none."""
        return None

    @property
    def count(self) -> int:
        """How many master tuples it holds by themselves, which others can take over; none if it holds pages."""
        return 0

    @property
    def capacity(self) -> int:
        """How many such tuples it can hold."""
        return 0

    @property
    def schema(self) -> pa.Schema:
        """The columns of such tuples."""
        return pa.schema([])

    def hits_by_size(self, shares: Sequence[float]) -> list[int]:  # noqa: ARG002
        """Return how many recent answers such shares of the cache would have given, too; empty if that is unknown."""
        return []

    def hottest(self, max_count: int) -> Iterator[HotRows]:  # noqa: ARG002
        """Yield at most so many such tuples, the most used ones first, as copies."""
        return iter(())

    def warm(self, rows: HotRows) -> int:  # noqa: ARG002
        """Let tuples enter that another stage of the same columns held; return how many have."""
        return 0
