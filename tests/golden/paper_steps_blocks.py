"""The papers' steps of the joins that keep whole pages in memory, SSIJ and Partitioned Join, in lists.

Written from what the papers on HYBRIDJOIN, X-HYBRIDJOIN and the priority queue say of them. A stream is a list of
groups: a group arrives when all that can be done about the groups before it has been done, so a stream of one group
never pauses. Where the papers leave something open, "Ours:" says what has been decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from paper_steps_cached import Read
from small_trace import page_of

Groups = Sequence[Sequence[int]]


@dataclass
class Blocks:
    """The pages in memory, with a utility counter for each page.

    Ours: the counter counts the tuples that a page has served, from disk or from memory, and each time that no tuple
    waits after a read, all counters lose a tenth. A page that was read stays if there is room, or if it has served more
    than the one in memory that has served least.
    """

    size: int
    pages: list[int] = field(default_factory=list)
    utility: dict[int, np.float32] = field(default_factory=dict)

    def answers(self, page: int) -> bool:
        """Look a stream tuple up in the pages in memory."""
        if page in self.pages:
            self._count(page, 1)
        return page in self.pages

    def has_been_read(self, page: int, served: int) -> None:
        """Keep a page or not."""
        self._count(page, served)
        if len(self.pages) >= self.size:
            least = min(self.pages, key=lambda one: self.utility[one])
            if self.utility[least] >= self.utility[page]:
                return
            self.pages.remove(least)
        self.pages.append(page)

    def age(self) -> None:
        """Let all counters lose a tenth."""
        for page in self.utility:
            self.utility[page] *= np.float32(0.9)

    def _count(self, page: int, tuples: int) -> None:
        self.utility[page] = self.utility.get(page, np.float32(0)) + np.float32(tuples)


def partitioned(groups: Groups, slots: int, threshold: int, trickle: int, blocks: Blocks) -> list[Read]:
    """Partitioned Join: a wait buffer with a slot for each partition of R.

    A tuple is joined at once if its partition is in memory, else it waits in the slot of its partition. A partition is
    read when its slot crosses the threshold or when the whole wait buffer is full. A switch operator chooses the index
    nested loop join by the fill of the input buffer.

    Ours: slots are looked at after as many tuples as fill one have entered, and the fullest one is read; at the end of
    the stream all are read. "Index nested loop" is while the input buffer holds at most `trickle` tuples.
    """
    waiting: list[tuple[int, int]] = []
    reads: list[Read] = []
    position = 0
    for number, group in enumerate(groups):
        inbox = list(group)
        look_ups: list[int] = []
        while True:
            is_trickle = 0 < len(inbox) <= trickle
            entered = []
            while inbox and len(entered) < threshold and len(waiting) < slots:
                page = page_of(inbox.pop(0))
                if not blocks.answers(page):
                    waiting.append((position, page))
                    entered.append(page)
                position += 1
            if is_trickle:
                look_ups += sorted(set(entered))
            fill = {page: sum(home == page for _, home in waiting) for page in range(10)}
            look_ups = [page for page in look_ups if fill[page]]
            fullest = max(range(10), key=lambda page: fill[page])
            has_ended = not inbox and number == len(groups) - 1
            if look_ups:
                page = look_ups.pop(0)
            elif fill[fullest] >= threshold or len(waiting) >= slots or (has_ended and waiting):
                page = fullest
            elif inbox:
                continue
            else:
                break
            answered = [one for one, home in waiting if home == page]
            waiting = [one for one in waiting if one[1] != page]
            blocks.has_been_read(page, len(answered))
            reads.append(Read(page, answered, list(blocks.pages)))
            if not waiting:
                blocks.age()
    return reads


@dataclass
class Ssij:
    """SSIJ: a pending phase, an online phase, a join phase.

    Pending: tuples wait in an input buffer until they are `pending`, or the stream ends. Online: they are looked up in
    the pages in memory; what is not found goes to the stream buffer. Join: once that is full, pages are read through
    the index and joined until it is empty, and it is not refilled meanwhile. Memory moves between pages and buffer.

    Ours: the buffer is full at `share` of its slots. A pause of the stream is taken for its end, by the pending phase
    and by the stream buffer. The page of the oldest tuple is read first. After every fourth join phase a sixteenth of
    the memory of both moves, on in the same direction unless a read has come to serve fewer tuples; a page takes as
    much as `slots_per_block` tuples, and the buffer keeps an eighth.
    """

    slots: int
    blocks: Blocks
    share: float
    pending: int
    slots_per_block: int
    reads: list[Read] = field(default_factory=list)
    buffer: list[tuple[int, int]] = field(default_factory=list)
    joins: int = 0
    direction: int = 1
    gain: float = 0.0
    served: int = 0
    read_before: int = 0

    def join(self, groups: Groups) -> list[Read]:
        """Return the reads that answer a stream."""
        position = 0
        for group in groups:
            unread = list(group)
            while unread:
                collected, unread = unread[: self.pending], unread[self.pending :]
                for key in collected:
                    if self.blocks.answers(page_of(key)):
                        self.served += 1
                    else:
                        self.buffer.append((position, page_of(key)))
                    position += 1
                    if len(self.buffer) >= max(1, int(self.slots * self.share)):
                        self.join_phase()
            if self.buffer:
                self.join_phase()
        return self.reads

    def join_phase(self) -> None:
        """Read until the buffer is empty."""
        while self.buffer:
            page = self.buffer[0][1]
            answered = [one for one, home in self.buffer if home == page]
            self.buffer = [one for one in self.buffer if one[1] != page]
            self.served += len(answered)
            self.blocks.has_been_read(page, len(answered))
            self.reads.append(Read(page, answered, list(self.blocks.pages)))
        self.blocks.age()
        self.joins += 1
        if self.slots_per_block and self.joins % 4 == 0:
            self.move_memory()

    def move_memory(self) -> None:
        """Move a sixteenth of the memory, in pages."""
        gain = self.served / (len(self.reads) - self.read_before)
        if gain < self.gain:
            self.direction = -self.direction
        self.gain, self.served, self.read_before = gain, 0, len(self.reads)
        total = self.blocks.size + self.slots // self.slots_per_block
        wanted = self.blocks.size + self.direction * max(1, total // 16)
        wanted = min(max(1, wanted), total - max(1, total // 8))
        slots = self.slots + (self.blocks.size - wanted) * self.slots_per_block
        if wanted < 1 or slots < self.slots_per_block:
            return
        while len(self.blocks.pages) > wanted:
            self.blocks.pages.remove(min(self.blocks.pages, key=lambda one: self.blocks.utility[one]))
        self.blocks.size, self.slots = wanted, slots
