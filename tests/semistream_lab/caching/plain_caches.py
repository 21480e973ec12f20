"""The steps of the simulated caches in plain lists; the first item of a list is the youngest."""

from __future__ import annotations

from collections import Counter
from itertools import combinations


class PlainCache:
    """Answers requests one after the other; rows enter some requests late."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.request = -1

    def has(self, key: int) -> bool:
        raise NotImplementedError

    def asked(self, key: int) -> None:
        """Learn of a request, before it is answered."""

    def use(self, key: int) -> None:
        """Learn of a hit."""

    def enter(self, key: int) -> None:
        raise NotImplementedError

    def hits(self, keys: list[int], delay: int, first: int) -> int:
        hits = 0
        due: list[tuple[int, int]] = []
        for request, key in enumerate(keys):
            while due and due[0][0] == request:
                self.enter(due.pop(0)[1])
            self.request = request
            self.asked(key)
            if self.has(key):
                self.use(key)
                hits += request >= first
            elif key not in [read for _, read in due]:
                due.append((request + 1 + delay, key))
        return hits


class PlainLru(PlainCache):
    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self.rows: list[int] = []

    def has(self, key: int) -> bool:
        return key in self.rows

    def use(self, key: int) -> None:
        self.rows.remove(key)
        self.rows.insert(0, key)

    def enter(self, key: int) -> None:
        if len(self.rows) == self.capacity:
            self.rows.pop()
        self.rows.insert(0, key)


class PlainSieve(PlainCache):
    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self.rows: list[int] = []
        self.visited: set[int] = set()
        self.hand: int | None = None
        """The row that the hand is at; None for the oldest."""

    def has(self, key: int) -> bool:
        return key in self.rows

    def use(self, key: int) -> None:
        self.visited.add(key)

    def enter(self, key: int) -> None:
        if len(self.rows) == self.capacity:
            place = len(self.rows) - 1 if self.hand is None else self.rows.index(self.hand)
            while self.rows[place] in self.visited:
                self.visited.remove(self.rows[place])
                place = place - 1 if place else len(self.rows) - 1
            self.hand = self.rows[place - 1] if place else None
            self.rows.pop(place)
        self.rows.insert(0, key)


class PlainS3Fifo(PlainCache):
    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self.small_capacity = max(1, capacity // 10)
        self.main_capacity = capacity - self.small_capacity
        self.small: list[int] = []
        self.main: list[int] = []
        self.ghosts: list[int] = []
        self.uses: dict[int, int] = {}

    def has(self, key: int) -> bool:
        return key in self.small or key in self.main

    def use(self, key: int) -> None:
        self.uses[key] = min(3, self.uses[key] + 1)

    def enter(self, key: int) -> None:
        known = key in self.ghosts
        if known:
            self.ghosts.remove(key)
        while len(self.small) + len(self.main) >= self.capacity:
            if len(self.small) >= self.small_capacity or not self.main:
                self.leave_small()
            else:
                self.leave_main()
        self.uses[key] = 0
        (self.main if known else self.small).insert(0, key)

    def leave_small(self) -> None:
        while self.small:
            key = self.small.pop()
            if self.uses[key] > 1:
                self.uses[key] = 0
                self.main.insert(0, key)
                if len(self.main) > self.main_capacity:
                    self.leave_main()
                    return
            else:
                if self.main_capacity:
                    if len(self.ghosts) == self.main_capacity:
                        self.ghosts.pop()
                    self.ghosts.insert(0, key)
                return

    def leave_main(self) -> None:
        while True:
            key = self.main.pop()
            if not self.uses[key]:
                return
            self.uses[key] -= 1
            self.main.insert(0, key)


class PlainWTinyLfu(PlainCache):
    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self.window_capacity = max(1, capacity // 100)
        self.main_capacity = capacity - self.window_capacity
        self.protected_capacity = int(0.8 * self.main_capacity)
        self.window: list[int] = []
        self.probation: list[int] = []
        self.protected: list[int] = []
        self.counts: Counter[int] = Counter()

    def has(self, key: int) -> bool:
        return key in self.window or key in self.probation or key in self.protected

    def asked(self, key: int) -> None:
        if (self.request + 1) % (10 * self.capacity) == 0:
            self.counts = Counter({other: count // 2 for other, count in self.counts.items()})
        self.counts[key] = min(15, self.counts[key] + 1)

    def use(self, key: int) -> None:
        if key in self.window:
            self.window.remove(key)
            self.window.insert(0, key)
        elif key in self.protected or not self.protected_capacity:
            segment = self.protected if key in self.protected else self.probation
            segment.remove(key)
            segment.insert(0, key)
        else:
            self.probation.remove(key)
            if len(self.protected) == self.protected_capacity:
                self.probation.insert(0, self.protected.pop())
            self.protected.insert(0, key)

    def enter(self, key: int) -> None:
        self.window.insert(0, key)
        if len(self.window) <= self.window_capacity:
            return
        newcomer = self.window.pop()
        if len(self.probation) + len(self.protected) < self.main_capacity:
            self.probation.insert(0, newcomer)
        elif self.main_capacity:
            segment = self.probation or self.protected
            if self.counts[newcomer] > self.counts[segment[-1]]:
                segment.pop()
                self.probation.insert(0, newcomer)


def most_hits(keys: list[int], capacity: int) -> int:
    """Return the most hits of any cache, by trying every set of rows at every step."""
    states: dict[frozenset[int], int] = {
        frozenset(rows): 0 for rows in combinations(sorted(set(keys)), min(capacity, len(set(keys))))
    }
    for key in keys:
        following: dict[frozenset[int], int] = {}
        for rows, hits in states.items():
            answered = hits + (key in rows)
            kept = rows | {key}
            choices = [rows] if key in rows else [rows, *(kept - {out} for out in rows)]
            for chosen in choices:
                following[chosen] = max(following.get(chosen, 0), answered)
        states = following
    return max(states.values(), default=0)
