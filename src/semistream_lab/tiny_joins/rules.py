"""Rules that choose the page to read next in a tiny join, by what waits; the simplest of them stand beside ours.

Papers: Dykeman, Ammar, Wong: Scheduling algorithms for videotex systems under broadcast delivery. ICC 1986 (longest
wait first, most requests first). Aksoy, Franklin: R×W: a scheduling approach for large-scale on-demand data broadcast.
IEEE/ACM Transactions on Networking 7(6), 1999.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array
from semistream.policies.contract import Moment, PageChoice
from semistream.policies.page_choice import DueFrequent, OldestWaiting, PlannedRuns


@dataclass
class ListedQueue:
    """The waiting tuples as a list of page and number, in the order of arrival."""

    page_group_count: int
    capacity: int
    tuples: list[tuple[int, int]] = field(default_factory=list)
    entered: int = 0

    def add(self, page: int) -> None:
        """Let a tuple wait for a page."""
        self.tuples.append((page, self.entered))
        self.entered += 1

    def drain(self, page: int) -> int:
        """Let all tuples leave that wait for a page; return how many."""
        before = self.count
        self.tuples = [one for one in self.tuples if one[0] != page]
        return before - self.count

    def waits(self, page: int) -> list[int]:
        """Return how many tuples have come since each that waits for a page, itself included, the oldest first."""
        return [self.entered - number for waited, number in self.tuples if waited == page]

    def pages(self) -> list[int]:
        """Return the pages that are waited for, the oldest tuple's first."""
        return list(dict.fromkeys(page for page, _ in self.tuples))

    @property
    def count(self) -> int:
        """The tuples that wait."""
        return len(self.tuples)

    @property
    def counts(self) -> Int32Array:
        """The tuples that wait for each page."""
        pages = np.array([page for page, _ in self.tuples], dtype=np.int64)
        return np.bincount(pages, minlength=self.page_group_count).astype(np.int32)

    @property
    def since(self) -> Int64Array:
        """The number of the oldest tuple of each page."""
        since = np.zeros(self.page_group_count, dtype=np.int64)
        for page, number in reversed(self.tuples):
            since[page] = number
        return since

    def waits_for(self, page_group: int) -> bool:
        """Say whether a tuple waits for a page."""
        return bool(self.counts[page_group])

    def in_order_of_age(self) -> Int64Array:
        """Return the pages that are waited for, the oldest tuple's first."""
        return np.array(self.pages(), dtype=np.int64)

    def oldest(self, rank: int = 0) -> int:
        """Return the page of the oldest tuple, or -1."""
        pages = self.pages()
        return pages[rank] if rank < len(pages) else -1

    def youngest(self, rank: int = 0) -> int:
        """Return the page of the youngest tuple, or -1."""
        pages = list(dict.fromkeys(page for page, _ in reversed(self.tuples)))
        return pages[rank] if rank < len(pages) else -1

    def fullest(self) -> int:
        """Return the page that most tuples wait for, or -1."""
        return int(self.counts.argmax()) if self.tuples else -1

    def at(self, share: float) -> int:
        """Return the page of the tuple at a share of the queue from the young end."""
        return self.tuples[-1 - int(share * (self.count - 1))][0]

    def oldest_lag(self) -> int:
        """Return how many tuples have entered since the oldest did."""
        return self.entered - self.tuples[0][1]


Rule = Callable[[ListedQueue, Moment], int]
"""Returns the page to read next."""


def most_requests_first(queue: ListedQueue, moment: Moment) -> int:  # noqa: ARG001
    """Return the page that most tuples wait for."""
    return queue.fullest()


def requests_times_wait(queue: ListedQueue, moment: Moment) -> int:  # noqa: ARG001
    """Return the page with the largest number of waiting tuples times the wait of the oldest: R×W."""
    return max(queue.pages(), key=lambda page: len(queue.waits(page)) * queue.waits(page)[0])


def longest_wait_first(queue: ListedQueue, moment: Moment) -> int:  # noqa: ARG001
    """Return the page whose tuples have waited longest, all their waits added: LWF."""
    return max(queue.pages(), key=lambda page: sum(queue.waits(page)))


def by(choice: PageChoice) -> Rule:
    """Return the rule by which the engine chooses pages, one at a time."""
    pages: list[int] = []

    def choose(queue: ListedQueue, moment: Moment) -> int:
        while pages:
            page = pages.pop(0)
            if queue.counts[page]:
                return page
        pages.extend(choice.choose(queue, moment).tolist())
        return pages.pop(0)

    return choose


def new_rules() -> Mapping[str, tuple[Rule, PageChoice | None]]:
    """Return all rules by the names that results have, and the page choice that wants to know what reads answer."""
    frequent = DueFrequent()
    plan = PlannedRuns(request_seconds=0.0, page_group_seconds=1.0, run_page_groups=1)
    return {
        "hybridjoin": (by(OldestWaiting()), None),
        "hybridjoin_pq": (by(frequent), frequent),
        "most_requests_first": (most_requests_first, None),
        "longest_wait_first": (longest_wait_first, None),
        "requests_times_wait": (requests_times_wait, None),
        "demandjoin": (by(plan), plan),
    }
