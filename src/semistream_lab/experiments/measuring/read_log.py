"""Writes down every read of a join: which page group, what it answered, and how far the stream had come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.engine.recipe import Recipe, Setting
from semistream.policies.contract import Moment, PageChoice, Queue


@dataclass
class ReadLog:
    """The reads of a disk phase, one entry each."""

    page_groups: list[int] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)
    entered: list[int] = field(default_factory=list)
    """How many tuples had entered when the read came."""

    def __len__(self) -> int:
        """Return the number of reads."""
        return len(self.page_groups)

    def min_gap(self) -> int | None:
        """Return the fewest tuples that entered between two reads of one page group; None if none was read twice."""
        page_groups = np.array(self.page_groups, dtype=np.int64)
        order = np.argsort(page_groups, kind="stable")
        same = np.diff(page_groups[order]) == 0
        gaps = np.diff(np.array(self.entered, dtype=np.int64)[order])[same]
        return int(gaps.min()) if len(gaps) else None

    def by_page_group(self, page_group_count: int) -> tuple[Int64Array, Int64Array]:
        """Return for each page group how often it was read and how many tuples that answered."""
        page_groups = np.array(self.page_groups, dtype=np.int64)
        reads = np.bincount(page_groups, minlength=page_group_count)
        answered = np.bincount(page_groups, weights=self.answered, minlength=page_group_count)
        return reads.astype(np.int64), answered.astype(np.int64)

    def clear(self) -> None:
        """Forget what was written down so far."""
        for entries in (self.page_groups, self.answered, self.entered):
            entries.clear()


class LoggedChoice(PageChoice):
    """Chooses as another page choice does, and writes every read down."""

    def __init__(self, inside: PageChoice, log: ReadLog) -> None:
        self._inside = inside
        self._log = log
        self.declare_as(inside)

    def choose(self, queue: Queue, moment: Moment) -> Int64Array:
        """Return what the other choice returns."""
        return self._inside.choose(queue, moment)

    def following(self, reads: int) -> list[Int64Array]:
        """Return what the other choice returns."""
        return self._inside.following(reads)

    def after_read(self, page_group: int, matches: int, queue: Queue) -> None:
        """Write the read down."""
        self._log.page_groups.append(page_group)
        self._log.answered.append(matches)
        self._log.entered.append(queue.entered)
        self._inside.after_read(page_group, matches, queue)


def logged(recipe: Recipe) -> tuple[Recipe, ReadLog]:
    """Return the recipe with its reads written to a log; not for recipes that read runs of page groups."""
    log = ReadLog()
    choice: Callable[[Setting], PageChoice] = lambda setting: LoggedChoice(recipe.page_choice(setting), log)  # noqa: E731
    return replace(recipe, page_choice=choice), log
