"""What the engine asks of a policy, and what a policy may ask of the engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

from semistream.core.arrays import BoolArray, Float64Array, Int32Array, Int64Array


class Queue(Protocol):
    """The waiting tuples as a policy sees them; it must not change them."""

    @property
    def count(self) -> int:
        """The tuples that wait."""

    @property
    def capacity(self) -> int:
        """The most tuples that can wait."""

    @property
    def entered(self) -> int:
        """The tuples that have ever entered: the clock of everything that is due later."""

    @property
    def page_group_count(self) -> int:
        """The page groups of the master table."""

    @property
    def counts(self) -> Int32Array:
        """The tuples that wait for each page group."""

    @property
    def since(self) -> Int64Array:
        """What `entered` was when the oldest tuple of each page group entered; only if the choice needs it."""

    def waits_for(self, page_group: int) -> bool:
        """Say whether a read of this page group would answer a tuple."""

    def in_order_of_age(self) -> Int64Array:
        """Return the page groups that some tuple waits for, the oldest tuple's first."""

    def oldest(self, rank: int = 0) -> int:
        """Return the page group of the oldest tuple, or -1."""

    def youngest(self, rank: int = 0) -> int:
        """Return the page group of the youngest tuple, or -1; only if the choice needs it."""

    def fullest(self) -> int:
        """Return the page group that most tuples wait for, or -1."""

    def at(self, share: float) -> int:
        """Return the page group of the tuple at a share of the queue from the young end; only if it is needed."""

    def oldest_lag(self) -> int:
        """Return how many tuples have entered since the oldest did; only if the choice needs positions."""


@dataclass(frozen=True)
class Moment:
    """What a page choice is told when it is asked, beside the queue."""

    input_pending: bool
    """More tuples may come."""
    overdue_before: int = 0
    """Tuples that entered before the queue's count of `entered` was this have waited for half of their deadline."""
    buffer: int = 0
    """Which of its buffers the page groups are to be loaded into."""
    loading: tuple[int, ...] = ()
    """The page groups that share pages with what its other buffers are being loaded with."""
    input_fill: int = 0
    """How many tuples the input held when some were last let in: those that were taken, and those still there."""


class PageChoice(ABC):
    """Chooses the page group of the master table that is read next.

    The engine asks once per round of the disk phase, or for each buffer that is free, while tuples wait, and tells the
    outcome of each read. All calls come from one thread. What a choice needs, and how its page groups are read, it says
    by the attributes below and nowhere else; a split that makes room for that is checked against them.
    """

    needs_positions = False
    """`at` and `oldest_lag` of the queue, which cost memory for each tuple."""
    needs_youngest = False
    """`youngest` of the queue."""
    needs_since = False
    """`since` of the queue."""
    needs_input_fill = False
    """`input_fill` of each moment; only where phases take turns."""
    sequential = False
    """Each read continues where the one before ended."""
    merges = False
    """Neighbours among the chosen page groups, which come in their order, are read by one request."""
    buffers = 1
    """How many page groups are loaded at once, each into a buffer of its own, where phases run side by side."""
    deadline_seconds = 0.0
    """If it is above 0, `overdue_before` of each moment is told."""

    def declare_as(self, other: PageChoice) -> None:
        """Declare what another choice does; for a choice that passes every call on to it."""
        for name, value in vars(PageChoice).items():
            if isinstance(value, (bool, int, float)):
                setattr(self, name, getattr(other, name))

    @abstractmethod
    def choose(self, queue: Queue, moment: Moment) -> Int64Array:
        """Return the page groups to read now, one request each.

        May be none while input is pending, and must be none if another buffer is being loaded with all that tuples
        wait for.
        """

    def following(self, reads: int) -> list[Int64Array]:  # noqa: ARG002
        """Return what up to `reads` next calls of `choose` will most likely return, so that it can be read ahead."""
        return []

    def learn_costs(self, request_seconds: float, page_group_seconds: float) -> None:  # noqa: B027
        """Learn what a request and the bytes of a page group cost, where that is measured."""

    def after_read(self, page_group: int, matches: int, queue: Queue) -> None:  # noqa: B027
        """Learn how many waiting tuples a read of `page_group` answered."""


class Intake(ABC):
    """Decides how many stream tuples enter before the next read."""

    @abstractmethod
    def room(self, queue: Queue, taken: int) -> int:
        """Return how many more tuples may enter now, `taken` having entered since the last read."""

    @abstractmethod
    def ready(self, queue: Queue, taken: int, *, available: bool, ended: bool) -> bool:
        """Say whether the next read may start; `available` says that input is there that could still be taken."""

    def begin(self, queue: Queue) -> None:  # noqa: B027
        """Learn that a read starts because `ready` has said that it may."""

    def answered(self, count: int, longest_wait_seconds: float, queue: Queue) -> None:  # noqa: B027
        """Learn how many tuples a read has answered and the longest wait among them; only with a deadline."""


class Staying(ABC):
    """Decides which waiting tuples stay for a later run when the input of a run has ended."""

    @abstractmethod
    def due(self, page_groups: Int64Array, oldest_seconds: Float64Array, page_group_count: int) -> BoolArray:
        """Say for each page group, in their order, whether its tuples leave now, by a read.

        `oldest_seconds` is when the oldest tuple of each first came; the table has `page_group_count` in all.
        """


class Admission(ABC):
    """Decides which master tuples of a page group just read are worth caching."""

    needs_page_groups = False
    """Whether `worth` is to be told the page group of each tuple; else it gets none."""

    @abstractmethod
    def worth(self, codes: Int64Array, matches: Int32Array, page_groups: Int64Array, queue: Queue) -> Int32Array:
        """Return what each master tuple is worth, by its matches in the read of its page group; 0 keeps it out."""

    def note_read(self, page_groups: Int64Array, queue: Queue) -> None:  # noqa: B027
        """Learn which page groups a read has brought, after `worth`; only if that needs page groups."""

    @property
    def window(self) -> int:
        """After how many tuples `age` is to be called; 0 for never."""
        return 0

    @property
    def is_settled(self) -> bool:
        """Whether the cache has answered about the same share of tuples for some windows."""
        return True

    @property
    def remembered_windows(self) -> float:
        """How many windows the counts of use stand for; 0 if that is unknown."""
        return 0.0

    def age(self, answered: int, tuples: int, outdated: float, perhaps_outdated: float = 0.0) -> int:  # noqa: ARG002
        """Learn at the end of a window how many of its tuples were answered; return how often to halve the past.

        `outdated` is the share of those entries which should have been used several times recently but were not used,
        or the share of their uses that entries have lost; `perhaps_outdated` is the latter if it is doubtful.
        """
        return 0

    def resize(self, cache_tuples: int) -> None:  # noqa: B027
        """Learn that the cache has another size now."""


class Replacement(ABC):
    """Decides which cached tuples are overwritten when the cache is full."""

    keeps_better = False
    """A newcomer may overwrite only what is worth less; `victims` must then come in order of their use."""

    def floor(self, frequencies: Int32Array) -> int:  # noqa: ARG002
        """Return the count of use below which, or at which, no newcomer can be better than what it would overwrite."""
        return -1

    def renumbered(self) -> None:  # noqa: B027
        """Learn that what was known of single slots and their use is void."""

    def spared(self, slots: Int64Array, frequencies: Int32Array) -> None:  # noqa: B027
        """Learn that the last of the victims it named, these slots, were not overwritten."""

    @abstractmethod
    def victims(self, count: int, frequencies: Int32Array) -> Int64Array:
        """Return `count` different slots to overwrite; `frequencies` counts the use of each slot."""
