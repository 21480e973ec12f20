"""A join that a Python worker of Spark holds from task to task: its table, its cache and its session."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from semistream.algorithms.registry import algorithm_named
from semistream.core.budget import MemoryBudget
from semistream.core.errors import SchemaDriftError
from semistream.core.stats import JoinStats
from semistream.engine.cache.cache_stage import CacheStage
from semistream.engine.cache.hot_rows import HotRows
from semistream.engine.output.output_plan import OutputPlan
from semistream.joining import JoinSession
from semistream.joining.ordered_session import OrderedSession
from semistream.policies.caching import CacheWorth
from semistream.spark.saved_cache import SavedCache
from semistream.spark.statistics import CACHE_SIZES
from semistream.store.address import Address
from semistream.store.contract import MasterStore, SaysOfCodes
from semistream.store.tables import table_at

_REFILL_SECONDS = 1.0
"""How long a new worker may take over saved rows."""
_TELL_SECONDS = 5.0
"""How often a cache tells at most what smaller ones would have answered."""
_FIRST_SAVE_SECONDS = 1.0
_SLOWEST_SAVE_SECONDS = 60.0
_MIN_HITS = 500
"""So many hits tell how they are spread over the entries of a cache."""

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
    number: int = 0
    """Tells joins of one task apart that could share a cache but are run at the same time."""

    def kind(self, *, verify: bool) -> str:
        """Return a text that two requests share exactly if they can share a cache."""
        columns = self.plan.taken_columns(verify=verify)
        shared = (str(self.table), self.algorithm, self.order, sorted(self.parameters.items()), columns)
        return repr((*shared, self.number) if self.number else shared)


@dataclass(frozen=True)
class Share:
    """What a join may use of the memory of its worker."""

    usual_bytes: int
    """Its equal part."""
    memory_bytes: int
    """What it has, with what its cache has got from others or given to them."""


class HeldJoin:
    """A join that a worker holds: the open master table, the cache, and the session of the latest kind of stream."""

    def __init__(self, kind: str, request: JoinRequest) -> None:
        self.kind = kind
        self.warmed_rows = 0
        """Rows that the cache of the session has taken over and that were not told yet."""
        self.kept_share = 1.0
        """How many rows left the latest task for each that came."""
        self.used = time.monotonic()
        beside = table_at(request.table).saved_rows
        self._saved_cache = SavedCache(beside, kind) if beside is not None else None
        self._store: MasterStore | None = None
        self._cache: CacheStage | None = None
        self._share = Share(0, 0)
        self.more_bytes = 0
        """What the cache has got from those of other joins, or given to them."""
        self._parked: list[HotRows] = []
        self._session: Session | None = None
        self._stream: tuple[pa.Schema, OutputPlan] | None = None
        self._save_after = time.monotonic() + _FIRST_SAVE_SECONDS
        self._save_pause = _FIRST_SAVE_SECONDS
        self._saved_admissions = 0
        self._tell_after = 0.0
        self._looked_at, self._looked_missed = JoinStats(), 0
        self._miss_seconds = 0.0

    def session(self, request: JoinRequest, store: MasterStore, share: Share, row_bytes: float) -> Session:
        """Return a session for the request; what is cached survives other versions, memory sizes and streams."""
        stream = (request.stream_schema, request.plan)
        same_table = self._store is not None and self._store.identity == store.identity
        if self._session is not None and same_table and self._share == share and self._stream == stream:
            return self._session
        fresh = self._store is None
        if not (same_table and self._share == share):
            self.park(share)
        self._session = None  # its memory is needed for the new one
        session = self._new_session(request, store, share, row_bytes)
        cache, self.warmed_rows = session.shared_cache(), 0
        for rows in self._saved(store, share.memory_bytes) if fresh else self._taken_over(store):
            if cache is not None and cache.count < cache.capacity:
                self.warmed_rows += session.warm(rows)
        if self._store is not None and self._store is not store:
            self._store.close()
        self._store, self._cache, self._share = store, cache, share
        self._session, self._stream = session, stream
        self._saved_admissions = session.stats.cache_admissions
        self.begin_look()
        return session

    def _new_session(self, request: JoinRequest, store: MasterStore, share: Share, row_bytes: float) -> Session:
        recipe, budget = algorithm_named(request.algorithm), MemoryBudget(share.memory_bytes)
        if request.order == "input":
            return OrderedSession(
                store,
                request.plan,
                request.stream_schema,
                recipe=recipe,
                budget=budget,
                parameters=request.parameters,
                cache=self._cache,
                usual_bytes=share.usual_bytes,
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

    def park(self, share: Share) -> None:
        """Give up all memory but for the hottest rows, of which at most what the cache of such a share has is kept."""
        session, self._session = self._session, None
        if self._cache is not None:
            before, now = self._share.memory_bytes, min(share.memory_bytes, self._share.memory_bytes)
            if isinstance(session, OrderedSession) and share.usual_bytes == self._share.usual_bytes:
                # All but the cache stays as large as it is.
                before, now = session.sizes.cache_bytes, max(0, session.sizes.cache_bytes - before + now)
            self._parked = list(self._cache.hottest(self._cache.capacity * now // max(1, before)))
        self._cache = None

    def worth(self) -> CacheWorth | None:
        """Return what the cache has saved since `begin_look`; None if that is not known."""
        session, cache = self._session, self._cache
        if not isinstance(session, OrderedSession) or cache is None or self._store is None:
            return None
        told = cache.hits_by_size(CACHE_SIZES)
        if not cache.is_sampled and (not told or told[-1] < _MIN_HITS):
            return None
        lately, missed = session.stats.since(self._looked_at), session.missed_tuples - self._looked_missed
        if missed:
            self._miss_seconds = lately.read_seconds / missed
        answered = max(0, lately.tuples_in - lately.null_keys - missed)
        saved = answered * self._miss_seconds
        return CacheWorth(
            size_bytes=session.sizes.cache_bytes,
            whole_bytes=session.sizes.whole_cache_bytes,
            spent_seconds=lately.read_seconds,
            shares=CACHE_SIZES,
            saved_seconds=[0.0 if cache.is_sampled else saved * hits / told[-1] for hits in told or CACHE_SIZES],
            twice_seconds=lately.shadow_hits * self._miss_seconds,
        )

    def give(self, more_bytes: int) -> None:
        """Let the cache have more memory from its next use on, or less from now on."""
        self.more_bytes += more_bytes
        if more_bytes < 0:
            self.park(Share(self._share.usual_bytes, self._share.memory_bytes + more_bytes))

    def begin_look(self) -> None:
        """Count what the cache saves from now on."""
        if isinstance(self._session, OrderedSession):
            self._looked_at, self._looked_missed = replace(self._session.stats), self._session.missed_tuples

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
