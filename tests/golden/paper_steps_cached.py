"""The papers' steps of the joins with a cache of master tuples or a queue of frequent pages, in lists.

Written from the papers without a look at the engine, as `paper_steps`. Where a paper leaves something open, a line that
begins with "Ours:" says what has been decided. What chance decides, who is overwritten in a full cache, is told from
outside. Where a read is of several `pages`, it begins at the page of the key that is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from small_trace import page_of


@dataclass(frozen=True)
class Read:
    """A read of the disk phase: the page, the positions that it answered, and what is in the cache after it."""

    page: int
    answered: list[int]
    cached: list[int]


Overwritten = Iterator[list[int]]
"""The slots that were overwritten, each time that the cache was full."""


@dataclass
class MasterTuples:
    """H_R: the master tuples that were found to be frequent, each in a slot, with how often it was used."""

    size: int
    overwritten: Overwritten
    keys: list[int] = field(default_factory=list)
    uses: list[int] = field(default_factory=list)

    def answers(self, key: int) -> bool:
        """Look a stream tuple up; a match is an output at once."""
        if key not in self.keys:
            return False
        self.uses[self.keys.index(key)] += 1
        return True

    def take(self, newcomers: list[tuple[int, int]]) -> None:
        """Let tuples of R enter, each with its matches; a full cache overwrites some of its entries for them.

        Ours: newcomers of one read do not overwrite each other, so no more than `size` of them enter, the best ones.
        """
        new = [(key, matches) for key, matches in newcomers if key not in self.keys]
        while len(new) > self.size:
            new.remove(min(new, key=lambda one: one[1]))
        fresh = min(len(new), self.size - len(self.keys))
        victims = self.victims(len(new) - fresh)
        for key, matches in new[:fresh]:
            self.keys.append(key)
            self.uses.append(matches)
        for slot, (key, matches) in zip(victims, new[fresh:], strict=True):
            self.keys[slot], self.uses[slot] = key, matches

    def victims(self, count: int) -> list[int]:
        """Return the slots to overwrite; CACHEJOIN leaves that to chance."""
        if not count:
            return []
        victims = next(self.overwritten)
        assert len(set(victims)) == len(victims) == count, "not as many different slots as there are newcomers"
        assert all(0 <= slot < len(self.keys) for slot in victims), "an empty slot is overwritten"
        return victims


@dataclass
class LeastFrequent(MasterTuples):
    """H_R of SSCJ, which overwrites the least frequent tuples.

    Ours: they are the least frequent as of the last look at all of them; who was used since is passed over, and when
    nobody is left, all are looked at again. Who goes among equals is told from outside.
    """

    seen: dict[int, int] = field(default_factory=dict)

    def victims(self, count: int) -> list[int]:
        """Return the slots that the paper's rule allows."""
        victims = super().victims(count)
        for chosen, slot in enumerate(victims):
            unused = {one: uses for one, uses in self.seen.items() if self.uses[one] == uses}
            if not unused:
                gone = set(victims[:chosen])
                unused = {one: uses for one, uses in enumerate(self.uses) if one not in gone}
            assert unused.get(slot) == min(unused.values()), "another tuple was used less"
            del unused[slot]
            self.seen = unused
        return victims


Waiting = tuple[int, int]
"""A tuple in the queue: its stream position, and how many had entered the queue before it."""
Choice = Callable[[list[Waiting], int], Waiting]
"""Says for which tuple of the queue the next page is read, knowing how many have entered."""


def oldest(queue: list[Waiting], entered: int) -> Waiting:  # noqa: ARG001
    """Return the tuple at the old end of Q."""
    return queue[0]


def at_position(share: float, patience: float, slots: int) -> Choice:
    """Return the choice of -L: the tuple at a share of Q from the young end.

    Ours: once `patience` times the slots have entered, the oldest among them, the oldest goes first.
    """

    def choose(queue: list[Waiting], entered: int) -> Waiting:
        if entered - queue[0][1] >= patience * slots:
            return queue[0]
        return queue[len(queue) - 1 - min(len(queue) - 1, int(share * len(queue)))]

    return choose


class FrequentPages:
    """The priority queue PQ of frequent pages.

    From the paper: f is the number of matches that a page shows when it is first read; a frequent page is due again
    after pageThreshold * h_S / f tuples have entered the queue; it is then read, and inserted with its new counter; it
    is removed when its matches are below a limit; f may glide, f * d + c * (1 - d).

    Ours: "frequent" is above `entry` times the mean matches of reads, pageThreshold is `eagerness` times this mean, and
    the limit is half of it; the mean forgets, each read counts 1/256. A page that is due while no tuple waits for it
    is removed without a read. A page that is read because of its oldest tuple keeps its turn. After sixteen scheduled
    reads in a row the oldest has its turn.
    """

    def __init__(self, slots: int, decay: float | None, eagerness: float, entry: float, pages: int = 1) -> None:
        self.slots, self.decay, self.eagerness, self.entry, self.pages = slots, decay, eagerness, entry, pages
        self.frequency: dict[int, float] = {}
        self.due: dict[int, int] = {}
        self.mean = 0.0
        self.in_a_row = 0
        self.scheduled: int | None = None

    def next_page(self, needed: list[int], entered: int) -> int | None:
        """Return the frequent page that is to be read now."""
        self.scheduled = None
        while self.in_a_row < 16 and self.due:
            counter, page = min((counter, page) for page, counter in self.due.items())
            if counter > entered:
                break
            del self.due[page]
            if any(page <= one < page + self.pages for one in needed):
                self.scheduled = page
                self.in_a_row += 1
                return page
            del self.frequency[page]
        self.in_a_row = 0
        return None

    def has_been_read(self, page: int, matches: int, entered: int) -> None:
        """Learn from a read."""
        self.mean = self.mean + (matches - self.mean) / 256 if self.mean else float(matches)
        if page not in self.frequency:
            if matches > self.entry * self.mean:
                self.frequency[page] = float(matches)
                self.insert(page, entered)
        elif page == self.scheduled:
            if self.decay is not None:
                self.frequency[page] = self.frequency[page] * self.decay + matches * (1 - self.decay)
            if matches < self.mean / 2:
                del self.frequency[page]
            else:
                self.insert(page, entered)

    def insert(self, page: int, entered: int) -> None:
        """Insert a page with the counter at which it is due."""
        period = self.eagerness * self.mean * self.slots / max(1.0, self.frequency[page])
        self.due[page] = entered + max(1, round(period))


Admission = Callable[[int, int, int], bool]
"""Says whether a tuple of R is frequent, by its page, its matches in a read and how many tuples have entered."""


def above(threshold: int) -> Admission:
    """CACHEJOIN: strictly more matches in one read than a preset threshold."""
    return lambda page, matches, entered: matches > threshold  # noqa: ARG005


class AboveRate:
    """CACHEJOIN-PQ. Ours: the threshold is for the time in which 2 * h_S tuples enter, and less for less time."""

    def __init__(self, threshold: int, slots: int) -> None:
        self.threshold, self.slots = threshold, slots
        self.last_read: dict[int, int] = {}

    def __call__(self, page: int, matches: int, entered: int) -> bool:
        share = min(1.0, (entered - self.last_read.get(page, 0)) / (2 * self.slots))
        return matches > max(1.0, self.threshold * share)


def queue_join(
    keys: Sequence[int],
    slots: int,
    table: MasterTuples | None = None,
    admission: Admission | None = None,
    choose: Choice = oldest,
    frequent: FrequentPages | None = None,
    pages: int = 1,
) -> list[Read]:
    """HYBRIDJOIN and CACHEJOIN with what the -L and -PQ variants change.

    Stream-probing: tuples are looked up in H_R until H_S is full or the stream buffer is empty; misses enter H_S and Q.
    Disk-probing: a partition of R is loaded; each of its tuples is probed into H_S; matches leave; a frequent one moves
    to H_R.
    """
    queue: list[Waiting] = []
    reads: list[Read] = []
    taken = entered = 0
    while taken < len(keys) or queue:
        while taken < len(keys) and len(queue) < slots:
            if table is None or not table.answers(keys[taken]):
                queue.append((taken, entered))
                entered += 1
            taken += 1
        if not queue:
            continue
        page = frequent.next_page([page_of(keys[one]) for one, _ in queue], entered) if frequent is not None else None
        if page is None:
            page = page_of(keys[choose(queue, entered)[0]])
        queue, read = _probe(range(page, page + pages), queue, keys, table, admission, entered)
        reads.append(read)
        if frequent is not None:
            frequent.has_been_read(page, len(read.answered), entered)
    return reads


def side_by_side(
    keys: Sequence[int],
    slots: int,
    buffer: int,
    table: MasterTuples,
    admission: Admission,
    *,
    both_ends: bool = False,
    pages: int = 1,
) -> list[Read]:
    """P-CACHEJOIN, and with `both_ends` OP-CACHEJOIN, in equal steps of time.

    The stream phase looks tuples up in H_R and puts misses into I_B; it stops only when I_B is full. The disk phase
    fetches from I_B into H_S and Q and goes on as CACHEJOIN's. Of OP-CACHEJOIN's two disk buffers, one is loaded by the
    old end of Q and the other by the young end, and they are probed in turn.

    Ours: the disk phase goes on while tuples wait, with I_B empty, too. In each step of time it comes first. A disk
    buffer's key is taken from Q after the other buffer has been probed.
    """
    handed: list[int] = []
    queue: list[Waiting] = []
    reads: list[Read] = []
    taken = entered = 0
    while taken < len(keys) or handed or queue:
        while handed and len(queue) < slots:
            queue.append((handed.pop(0), entered))
            entered += 1
        if queue:
            end = -1 if both_ends and len(reads) % 2 else 0
            page = page_of(keys[queue[end][0]])
            queue, read = _probe(range(page, page + pages), queue, keys, table, admission, entered)
            reads.append(read)
        while taken < len(keys) and len(handed) < buffer:
            if not table.answers(keys[taken]):
                handed.append(taken)
            taken += 1
    return reads


def _probe(
    pages: range,
    queue: list[Waiting],
    keys: Sequence[int],
    table: MasterTuples | None,
    admission: Admission | None,
    entered: int,
) -> tuple[list[Waiting], Read]:
    """Probe a partition tuple by tuple into H_S, counting the matches of each; return what still waits."""
    answered = []
    newcomers = []
    matched = set()
    for key in range(4 * pages.start + 1, 4 * pages.stop + 1):
        matching = [position for position, _ in queue if keys[position] == key]
        answered += matching
        matched.update(map(page_of, [key] * len(matching)))
        if matching and admission is not None and admission(page_of(key), len(matching), entered):
            newcomers.append((key, len(matching)))
    if table is not None:
        table.take(newcomers)
    if isinstance(admission, AboveRate):
        admission.last_read.update(dict.fromkeys(matched, entered))
    left = [one for one in queue if one[0] not in answered]
    return left, Read(pages.start, sorted(answered), list(table.keys) if table is not None else [])
