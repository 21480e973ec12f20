"""What lives in a Python worker of Spark from task to task: joins, their caches, and one budget for all of them."""

from __future__ import annotations

import gc
import sys
import time
import zipimport
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyspark

from semistream.core.errors import BudgetTooSmallError, SchemaDriftError
from semistream.policies.caching import divided_memory
from semistream.spark.held_join import HeldJoin, JoinRequest, Session, Share, check_drift
from semistream.store.contract import MasterStore, StoredTable

_SPARK_VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
_IDLE_SECONDS = 600.0
"""A join that was not used for so long gives its memory to the others."""
_LOOK_SECONDS = 5.0
"""How long caches are watched at least before memory may move between them."""
_MIN_CACHE_PART = 8
"""A cache keeps one part in so many of its usual memory, whatever the others could do with it."""


@dataclass(frozen=True)
class Wanted:
    """A join that a task needs, with a version of its table."""

    request: JoinRequest
    table: StoredTable
    row_bytes: float
    version: int | None = None
    """None as long as it is not known."""
    opened: MasterStore | None = None
    """The version, if it is open already."""


class Worker:
    """The joins of this process. One task runs at a time, so nothing here is locked.

    All joins together keep to one budget, the largest that a task has asked for: each has an equal part of it, and no
    more than its own task asks for. Now and then memory moves from caches that save little to such as save more.
    """

    def __init__(self, look_seconds: float = _LOOK_SECONDS) -> None:
        self._joins: dict[str, HeldJoin] = {}
        self._memory_bytes = 0
        self._frozen = False
        self._look_seconds = look_seconds
        self._look_after = 0.0

    def join_for(
        self, request: JoinRequest, table: StoredTable, version: int, row_bytes: float
    ) -> tuple[HeldJoin, Session]:
        """Return the join of a request with a version of its table, with its caches as they are."""
        (joined,) = self.joins_for([Wanted(request, table, row_bytes, version)])
        return joined

    def joins_for(self, wanted: Sequence[Wanted]) -> list[tuple[HeldJoin, Session]]:
        """Return joins that are used side by side; each of them is another one."""
        return self._used(wanted, {})

    def joins_as_before(self, wanted: Sequence[Wanted]) -> list[tuple[HeldJoin, Session]] | None:
        """Return such joins, those whose version is not known with that they were used with last.

        None if one of these was not used before, or lacks columns.
        """
        before: dict[int, tuple[HeldJoin, MasterStore]] = {}
        for place, one in enumerate(wanted):
            if one.version is None:
                last = self._last(one.request)
                if last is None:
                    return None
                before[place] = last
        return self._used(wanted, before)

    def has_joined(self, request: JoinRequest) -> bool:
        """Say whether there is a join of a request with some version of its table."""
        return self._last(request) is not None

    def _used(
        self, wanted: Sequence[Wanted], before: Mapping[int, tuple[HeldJoin, MasterStore]]
    ) -> list[tuple[HeldJoin, Session]]:
        """Return sessions of joins, some of which are found already."""
        self._memory_bytes = max(self._memory_bytes, *(one.request.memory_bytes for one in wanted))
        now = time.monotonic()
        for held, _ in before.values():
            held.used = now
        used = [before.get(place) or self._held(one) for place, one in enumerate(wanted)]
        mine = [held for held, _ in used]
        while True:
            try:
                return [
                    (held, held.session(one.request, store, self._share(held, one.request), one.row_bytes))
                    for (held, store), one in zip(used, wanted, strict=True)
                ]
            except BudgetTooSmallError:
                others = [other for other in self._joins.values() if other not in mine]
                if not others:
                    raise
                # Better that joins take turns than that a stream stops.
                self.drop(min(others, key=lambda other: other.used))

    def drop(self, held: HeldJoin) -> None:
        """Forget a join, such as one whose run was not brought to its end."""
        if self._joins.pop(held.kind, None) is not None:
            self._share_equally()

    def end_task(self, *joins: HeldJoin) -> None:
        """Do what keeps later tasks fast."""
        now = time.monotonic()
        for held in joins:
            held.used = now
            held.save_now_and_then()
        self._forget_idle(now)
        self._move_memory_now_and_then()
        self.freeze()
        _forget_archives()

    def freeze(self) -> None:
        """Keep what has been loaded by now out of the collection of garbage, once.

        Spark collects garbage after every task, which takes long while all of numba's objects are looked at.
        """
        if not self._frozen:
            gc.freeze()
            self._frozen = True

    def _share(self, held: HeldJoin, request: JoinRequest) -> Share:
        usual_bytes = min(request.memory_bytes, self._memory_bytes // len(self._joins))
        return Share(usual_bytes, min(request.memory_bytes, usual_bytes + held.more_bytes))

    def _share_equally(self) -> None:
        for held in self._joins.values():
            held.more_bytes = 0

    def _move_memory_now_and_then(self) -> None:
        """Give caches that save more the memory of such as save less, if that is worth it.

        Those that shrink give their memory up at once, the others take it when they are used next.
        """
        now = time.monotonic()
        if len(self._joins) < 2 or now < self._look_after:
            return
        known = [(held, worth) for held in self._joins.values() if (worth := held.worth()) is not None]
        if len(known) < 2:
            return
        self._look_after = now + self._look_seconds
        least = [(worth.size_bytes - held.more_bytes) // _MIN_CACHE_PART for held, worth in known]
        sizes = divided_memory([worth for _, worth in known], min_bytes=least)
        for place, (held, worth) in enumerate(known):
            held.begin_look()
            if sizes is not None:
                held.give(sizes[place] - worth.size_bytes)

    def _forget_idle(self, now: float) -> None:
        """Give the memory of joins that nobody uses any more to the others."""
        for other in [other for other in self._joins.values() if now - other.used > _IDLE_SECONDS]:
            self.drop(other)

    def _last(self, request: JoinRequest) -> tuple[HeldJoin, MasterStore] | None:
        """Return the join of a request with the version that it was used with last, if that has all columns."""
        for held, store in self._known(request):
            with suppress(SchemaDriftError):
                check_drift(request, store)
                return held, store
        return None

    def _known(self, request: JoinRequest) -> Iterator[tuple[HeldJoin, MasterStore]]:
        for verify in (False, True):
            held = self._joins.get(request.kind(verify=verify))
            if held is not None and held.store is not None:
                yield held, held.store

    def _held(self, wanted: Wanted) -> tuple[HeldJoin, MasterStore]:
        """Return the join with the version that is wanted, which is opened if it is not open."""
        request, table, version = wanted.request, wanted.table, wanted.version
        assert version is not None
        identity = table.identity(version)
        for known, store in self._known(request):
            if store.identity == identity:
                known.used = time.monotonic()
                return known, store
        store = wanted.opened if wanted.opened is not None else table.open(version)
        check_drift(request, store)
        kind = request.kind(verify=not store.codec.exact)
        held = self._joins.get(kind)
        if held is None:
            self._forget_idle(time.monotonic())
            held = HeldJoin(kind, request)
            self._share_equally()
            part = self._memory_bytes // (len(self._joins) + 1)
            for other in self._joins.values():
                other.park(Share(part, part))
            self._joins[kind] = held
        held.used = time.monotonic()
        return held, store


def _forget_archives() -> None:
    """Drop Python's importers of archives: Spark before 4.2 lets each of them read its archive again in every task."""
    if _SPARK_VERSION >= (4, 2):
        return
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimport.zipimporter):
            del sys.path_importer_cache[path]


WORKER = Worker()
"""The joins of this process."""
