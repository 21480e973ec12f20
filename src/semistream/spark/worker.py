"""What lives in a Python worker of Spark from task to task: joins, their caches, and one budget for all of them."""

from __future__ import annotations

import gc
import sys
import time
import zipimport
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyspark

from semistream.algorithms.registry import algorithm_named
from semistream.core.budget import MemoryBudget
from semistream.core.errors import BudgetTooSmallError, SchemaDriftError
from semistream.engine.cache.cache_stage import CacheStage
from semistream.engine.cache.hot_rows import HotRows
from semistream.engine.output.output_plan import OutputPlan
from semistream.joining import JoinSession
from semistream.joining.ordered_session import OrderedSession
from semistream.spark.saved_cache import SavedCache
from semistream.store.address import Address
from semistream.store.contract import MasterStore, SaysOfCodes, StoredTable
from semistream.store.tables import table_at

_SPARK_VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
_IDLE_SECONDS = 600.0
"""A join that was not used for so long gives its memory to the others."""
_REFILL_SECONDS = 1.0
"""How long a new worker may take over saved rows."""
_TELL_SECONDS = 5.0
"""How often a cache tells at most what smaller ones would have answered."""
_FIRST_SAVE_SECONDS = 1.0
_SLOWEST_SAVE_SECONDS = 60.0


Order: TypeAlias = Literal["any", "input"]
"""How rows leave a task: when they are answered, or in the order they came."""
Session: TypeAlias = JoinSession | OrderedSession


@dataclass(frozen=True)
class JoinRequest:
    """What a task asks of its worker."""

    table: Address
    algorithm: str
    parameters: Mapping[str, float]
    order: Order
    plan: OutputPlan
    stream_schema: pa.Schema
    master_schema: pa.Schema
    """The columns that the plan needs, as they were when the query was planned."""
    memory_bytes: int

    def kind(self, *, verify: bool) -> str:
        """Return a text that two requests share exactly if they can share a cache."""
        columns = self.plan.taken_columns(verify=verify)
        return repr((str(self.table), self.algorithm, self.order, sorted(self.parameters.items()), columns))


class HeldJoin:
    """A join that a worker holds: the open master table, the cache, and the session of the latest kind of stream."""

    def __init__(self, kind: str, request: JoinRequest) -> None:
        self.kind = kind
        self.warmed_rows = 0
        """Rows that the cache has taken over since it was last asked."""
        self.used = time.monotonic()
        beside = table_at(request.table).saved_rows
        self._saved_cache = SavedCache(beside, kind) if beside is not None else None
        self._store: MasterStore | None = None
        self._cache: CacheStage | None = None
        self._memory_bytes = 0
        self._parked: list[HotRows] = []
        self._session: Session | None = None
        self._stream: tuple[pa.Schema, OutputPlan] | None = None
        self._save_after = time.monotonic() + _FIRST_SAVE_SECONDS
        self._save_pause = _FIRST_SAVE_SECONDS
        self._saved_admissions = 0
        self._tell_after = 0.0

    def session(self, request: JoinRequest, store: MasterStore, memory_bytes: int, row_bytes: float) -> Session:
        """Return a session for the request; what is cached survives other versions, memory sizes and streams."""
        stream = (request.stream_schema, request.plan)
        same_table = self._store is not None and self._store.identity == store.identity
        if self._session is not None and same_table and self._memory_bytes == memory_bytes and self._stream == stream:
            return self._session
        fresh = self._store is None
        if not (same_table and self._memory_bytes == memory_bytes):
            self.park(memory_bytes)
        self._session = None  # its memory is needed for the new one
        session = self._new_session(request, store, memory_bytes, row_bytes)
        cache = session.shared_cache()
        for rows in self._saved(store, memory_bytes) if fresh else self._taken_over(store):
            if cache is not None and cache.count < cache.capacity:
                self.warmed_rows += session.warm(rows)
        if self._store is not None and self._store is not store:
            self._store.close()
        self._store, self._cache, self._memory_bytes = store, cache, memory_bytes
        self._session, self._stream = session, stream
        self._saved_admissions = session.stats.cache_admissions
        return session

    def _new_session(self, request: JoinRequest, store: MasterStore, memory_bytes: int, row_bytes: float) -> Session:
        recipe, budget = algorithm_named(request.algorithm), MemoryBudget(memory_bytes)
        if request.order == "input":
            return OrderedSession(
                store,
                request.plan,
                request.stream_schema,
                recipe=recipe,
                budget=budget,
                parameters=request.parameters,
                cache=self._cache,
            )
        return JoinSession(
            store,
            request.plan,
            request.stream_schema,
            recipe=recipe,
            budget=budget,
            stream_row_bytes=row_bytes,
            parameters=request.parameters,
            finish_by_demand=True,
            cache=self._cache,
        )

    def park(self, memory_bytes: int) -> None:
        """Give up all memory but for the hottest rows, of which at most the cache's share of so many bytes is kept."""
        self._session = None
        if self._cache is not None:
            max_count = self._cache.capacity * min(memory_bytes, self._memory_bytes) // self._memory_bytes
            self._parked = list(self._cache.hottest(max_count))
        self._cache = None

    @property
    def store(self) -> MasterStore | None:
        """The version of the master table that was used last."""
        return self._store

    @property
    def memory_bytes(self) -> int:
        """What is held of the budget."""
        return self._session.budget.used_bytes if self._session is not None else 0

    @property
    def cached_rows(self) -> int:
        """How many entries the cache has."""
        return self._cache.count if self._cache is not None else 0

    def hits_by_size_now_and_then(self, shares: Sequence[float]) -> list[int]:
        """Return how many recent hits smaller caches would have had, too; nothing if that was told a moment ago."""
        if self._cache is None or time.monotonic() < self._tell_after:
            return []
        self._tell_after = time.monotonic() + _TELL_SECONDS
        return self._cache.hits_by_size(shares)

    def save_now_and_then(self) -> None:
        """Save what is cached for other workers, less and less often, and only if it has changed."""
        file, store, cache = self._saved_cache, self._store, self._cache
        if file is None or store is None or cache is None or self._session is None:
            return
        admissions = self._session.stats.cache_admissions
        if time.monotonic() < self._save_after or admissions == self._saved_admissions:
            return
        file.save(cache.hottest(cache.capacity), cache.schema, store.version, store.identity)
        self._saved_admissions = admissions
        self._save_pause = min(2 * self._save_pause, _SLOWEST_SAVE_SECONDS)
        self._save_after = time.monotonic() + self._save_pause

    def _taken_over(self, store: MasterStore) -> Iterable[HotRows]:
        parked, self._parked = self._parked, []
        then = self._store if self._store is not None else store
        return _still_true(parked, store, then.version, then.identity)

    def _saved(self, store: MasterStore, memory_bytes: int) -> Iterable[HotRows]:
        if self._saved_cache is None:
            return ()
        version, identity, saved = self._saved_cache.load(memory_bytes, _REFILL_SECONDS)
        return _still_true(saved, store, version, identity)


class Worker:
    """The joins of this process. One task runs at a time, so nothing here is locked.

    All joins together keep to one budget, the largest that a task has asked for: each has an equal part of it, and no
    more than its own task asks for.
    """

    def __init__(self) -> None:
        self._joins: dict[str, HeldJoin] = {}
        self._memory_bytes = 0
        self._frozen = False

    def join_for(
        self,
        request: JoinRequest,
        table: StoredTable,
        version: int,
        row_bytes: float,
        opened: MasterStore | None = None,
    ) -> tuple[HeldJoin, Session]:
        """Return the join of a request with a version of its table, which may be open, with its caches as they are."""
        self._memory_bytes = max(self._memory_bytes, request.memory_bytes)
        return self._used(*self._held(request, table, version, opened), request, row_bytes)

    def join_as_before(self, request: JoinRequest, row_bytes: float) -> tuple[HeldJoin, Session] | None:
        """Return the join of a request with the version of its table that it was used with last, if there is one."""
        for held in self._held_before(request):
            assert held.store is not None
            try:
                check_drift(request, held.store)
            except SchemaDriftError:
                return None
            self._memory_bytes = max(self._memory_bytes, request.memory_bytes)
            return self._used(held, held.store, request, row_bytes)
        return None

    def has_joined(self, request: JoinRequest) -> bool:
        """Say whether there is a join of a request with some version of its table."""
        return bool(self._held_before(request))

    def _held_before(self, request: JoinRequest) -> list[HeldJoin]:
        of_kind = (self._joins.get(request.kind(verify=verify)) for verify in (False, True))
        return [held for held in of_kind if held is not None and held.store is not None]

    def _used(
        self, held: HeldJoin, store: MasterStore, request: JoinRequest, row_bytes: float
    ) -> tuple[HeldJoin, Session]:
        held.used = time.monotonic()
        while True:
            memory_bytes = min(request.memory_bytes, self._memory_bytes // len(self._joins))
            try:
                session = held.session(request, store, memory_bytes, row_bytes)
            except BudgetTooSmallError:
                if len(self._joins) == 1:
                    raise
                # Better that joins take turns than that a stream stops.
                oldest = min((other for other in self._joins.values() if other is not held), key=lambda o: o.used)
                del self._joins[oldest.kind]
                continue
            return held, session

    def drop(self, held: HeldJoin) -> None:
        """Forget a join whose run was not brought to its end."""
        self._joins.pop(held.kind, None)

    def end_task(self, held: HeldJoin) -> None:
        """Do what keeps later tasks fast."""
        held.save_now_and_then()
        self.freeze()
        _forget_archives()

    def freeze(self) -> None:
        """Keep what has been loaded by now out of the collection of garbage, once.

        Spark collects garbage after every task, which takes long while all of numba's objects are looked at.
        """
        if not self._frozen:
            gc.freeze()
            self._frozen = True

    def _held(
        self, request: JoinRequest, table: StoredTable, version: int, opened: MasterStore | None
    ) -> tuple[HeldJoin, MasterStore]:
        identity = table.identity(version)
        for verify in (False, True):
            join = self._joins.get(request.kind(verify=verify))
            if join is not None and join.store is not None and join.store.identity == identity:
                return join, join.store
        store = opened if opened is not None else table.open(version)
        check_drift(request, store)
        kind = request.kind(verify=not store.codec.exact)
        held = self._joins.get(kind)
        if held is None:
            now = time.monotonic()
            for other in [other for other in self._joins.values() if now - other.used > _IDLE_SECONDS]:
                del self._joins[other.kind]
            held = HeldJoin(kind, request)
            for other in self._joins.values():
                other.park(self._memory_bytes // (len(self._joins) + 1))
            self._joins[kind] = held
        return held, store


def check_drift(request: JoinRequest, store: MasterStore) -> None:
    """Raise an error if a version lacks a column that was planned with, or has it with another type."""
    for planned in request.master_schema:
        if planned.name not in store.schema.names:
            raise SchemaDriftError(
                f"The master table {request.table} has lost its column {planned.name!r} since the query was planned: "
                f"rebuild it with that column, or restart the query without it."
            )
        stored = store.schema.field(planned.name).type
        if stored != planned.type:
            raise SchemaDriftError(
                f"The column {planned.name!r} of the master table {request.table} was {planned.type} when the query "
                f"was planned and is {stored} now: rebuild it as it was, or restart the query."
            )


def _still_true(pieces: Iterable[HotRows], store: MasterStore, version: int, identity: str) -> Iterator[HotRows]:
    """Yield the rows that are the same in the store as in the version they came from."""
    is_same: SaysOfCodes | None = None
    for hot in pieces:
        is_same = is_same or store.unchanged_since(version, identity)
        kept = is_same(hot.codes)
        rows = hot.rows
        if rows is not None and not kept.all():
            rows = rows.take(pa.array(np.flatnonzero(kept)))
        yield HotRows(hot.codes[kept], hot.frequencies[kept], rows, hot.absent_codes[is_same(hot.absent_codes)])


def _forget_archives() -> None:
    """Drop Python's importers of archives: Spark before 4.2 lets each of them read its archive again in every task."""
    if _SPARK_VERSION >= (4, 2):
        return
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimport.zipimporter):
            del sys.path_importer_cache[path]


WORKER = Worker()
"""The joins of this process."""
