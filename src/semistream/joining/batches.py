"""The join of Arrow record batches with a master table, without Spark."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from semistream.algorithms.demandjoin import DEADLINE
from semistream.algorithms.registry import DEFAULT_ALGORITHM, algorithm_named
from semistream.core.budget import MemoryBudget
from semistream.core.errors import InvalidSettingError, UnknownColumnError
from semistream.core.stats import JoinStats
from semistream.engine.output.output import DeadLetters
from semistream.engine.output.output_plan import OutputPlan, plan_output
from semistream.engine.recipe import Recipe
from semistream.joining.arguments import check_arguments, check_dead_letters, check_seed, checked_seconds
from semistream.joining.fresh_batches import FreshBatches
from semistream.joining.join_types import join_type
from semistream.joining.matched import MatchedColumn, with_matched
from semistream.joining.ordered_session import OrderedSession
from semistream.joining.session import JoinSession, typical_row_bytes
from semistream.joining.stream_batches import open_stream
from semistream.store.contract import MasterStore
from semistream.store.tables import TableAddress, checked_disk, table_at

Batches: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable[pa.RecordBatch | None]

On: TypeAlias = str | Sequence[str] | Mapping[str, str]

_Planned: TypeAlias = tuple[OutputPlan, MatchedColumn | None]


def join(
    batches: Batches,
    master: MasterStore | TableAddress,
    *,
    on: On,
    how: str = "inner",
    algorithm: str = DEFAULT_ALGORITHM,
    memory: int | str = "64MB",
    disk: int | str | None = None,
    max_wait: float | str | None = None,
    columns: Sequence[str] | None = None,
    replace: Mapping[str, str] | None = None,
    suffix: str | None = None,
    matched: str | None = None,
    dead_letters: DeadLetters | None = None,
    parameters: Mapping[str, float] | None = None,
    seed: int = 0,
) -> JoinedBatches:
    """Join a stream of record batches with a master table, lazily, inside `memory` bytes.

    Rows are emitted as soon as they are answered, not in the order in which they came. While an iterator is silent,
    rows that wait are still answered. Settings are checked at once; columns and types are checked as soon as the
    schema of the stream is known, which for a bare iterator is when its first batch arrives.

    Args:
        batches: A table, a reader, any iterable of record batches, or anything with an Arrow stream, such as a pandas
            frame. Dictionaries and views come out as plain values.
        master: The master table, its path, or a store that `MasterTable.open` returned.
        on: The key columns: a name, a list of names, or a mapping from stream columns to key columns of the master
            table.
        how: "inner", "left", "semi" or "anti"; Spark's names, such as "left_outer", also work.
        algorithm: The name of the join algorithm; `semistream algorithms` lists them.
        memory: What the join may use: bytes, or a string such as "64MB", "64 MiB" or, with Spark's meaning of 1024
            times 1024, "64m".
        disk: What copies of parts of a master table in an object store may take on the disk, in the folder for
            temporary files: bytes, or a string such as "2GB". All joins of a user with the same `disk` share it. By
            default nothing is kept there.
        max_wait: The longest time that a row may wait inside the join, as far as reads allow it: seconds, or a string
            such as "10 seconds". Only for DEMANDJOIN.
        columns: The master columns to add; by default all except the key.
        replace: A mapping from stream columns to the master columns that take their place.
        suffix: Renames master columns that clash with stream columns by adding this string.
        matched: The name of a boolean column to add to a left join, which says whether the row has a match.
        dead_letters: A function that takes rows that are too large for the memory, as a record batch, and the reason;
            without it, such a row raises RowTooLargeError.
        parameters: Parameters of the algorithm, by name.
        seed: The random seed.
    """
    kind = join_type(how)
    check_arguments(on=on, columns=columns, replace=replace, suffix=suffix, parameters=parameters)
    check_dead_letters(dead_letters)
    check_seed(seed)
    recipe = algorithm_named(algorithm)
    parameters = dict(parameters or {})
    if max_wait is not None:
        seconds = checked_seconds("max_wait", max_wait)
        if DEADLINE.name not in recipe.parameters:
            raise InvalidSettingError(f"{recipe.name} cannot keep a deadline: leave out max_wait or choose demandjoin.")
        parameters[DEADLINE.name] = seconds
    recipe.values(parameters)  # checks them

    def plan(stream: pa.Schema, store: MasterStore, pairs: list[tuple[str, str]]) -> _Planned:
        planned = plan_output(stream, store.schema, pairs, how=kind, columns=columns, replace=replace, suffix=suffix)
        return with_matched(planned, store.schema, matched)

    store = _opened(master, disk)
    if store.warning is not None:
        warnings.warn(store.warning, stacklevel=2)
    return JoinedBatches(
        batches,
        store,
        on,
        plan,
        recipe=recipe,
        memory=memory,
        dead_letters=dead_letters,
        parameters=parameters,
        seed=seed,
    )


class JoinedBatches(Iterator[pa.RecordBatch]):
    """The output of a join: record batches, made as they are asked for."""

    def __init__(
        self,
        batches: Batches,
        store: MasterStore,
        on: On,
        plan: Callable[[pa.Schema, MasterStore, list[tuple[str, str]]], _Planned],
        *,
        recipe: Recipe,
        memory: int | str,
        dead_letters: DeadLetters | None,
        parameters: Mapping[str, float] | None,
        seed: int,
    ) -> None:
        self._recipe = recipe
        self._budget = MemoryBudget(memory)
        self._store = store
        self._pairs = key_pairs(on, store)
        self._make_plan = plan
        self._dead_letters = dead_letters
        self._parameters = parameters
        self._seed = seed
        self._plan: OutputPlan | None = None
        self._session: JoinSession | OrderedSession | None = None
        self._earlier: JoinStats | None = None
        self._matched: MatchedColumn | None = None
        stream = open_stream(batches, max(1, self._budget.total_bytes // 24))
        self._pump, self._source = stream.may_be_silent, stream.batches
        if stream.schema is not None:
            self._prepare(stream.schema)
        self._output = self._run()

    @property
    def stats(self) -> JoinStats:
        """What the join has counted so far."""
        counted = self._session.stats if self._session is not None else JoinStats()
        return counted if self._earlier is None else counted.after(self._earlier)

    @property
    def schema(self) -> pa.Schema | None:
        """The schema of the output; None while the schema of the stream is not known."""
        if self._plan is None:
            return None
        return self._plan.schema if self._matched is None else self._matched.schema(self._plan.schema)

    def __next__(self) -> pa.RecordBatch:
        return next(self._output)

    def close(self) -> None:
        """Stop early."""
        self._output.close()

    def read_all(self) -> pa.Table:
        """Return all remaining rows as one table."""
        batches = list(self)
        if self.schema is None:
            raise InvalidSettingError(
                "The stream had no batch, so its columns are not known: pass a reader, which has a schema."
            )
        return pa.Table.from_batches(batches, schema=self.schema)

    def _prepare(self, stream: pa.Schema) -> None:
        plan, matched = self._make_plan(stream, self._store, self._pairs)
        self._store.codec.check(plan.stream_keys, [stream.field(name).type for name in plan.stream_keys])
        self._plan, self._matched, self._stream_schema = plan, matched, stream

    def _run(self) -> Generator[pa.RecordBatch]:
        first = None
        for batch in self._source:
            if batch is not None and self._plan is None:
                self._prepare(batch.schema)
            if batch is not None and batch.num_rows:
                first = batch
                break
        if first is None:
            return
        row_bytes = typical_row_bytes(first, self._budget.total_bytes)
        fresh = FreshBatches(chain([first], self._source), self._store.max_age_seconds)
        del first  # when it has been joined nobody needs it
        while not fresh.has_ended:
            for rows in self._joined(fresh.turn(), row_bytes):
                yield rows if self._matched is None else self._matched.with_flags(rows)

    def _joined(self, batches: Iterator[pa.RecordBatch | None], row_bytes: float) -> Iterator[pa.RecordBatch]:
        """Yield the output of a session of its own for some batches."""
        assert self._plan is not None
        if self._session is not None:
            self._earlier, self._session = self.stats, None  # its memory is needed for the new one
        made: dict[str, Any] = {
            "recipe": self._recipe,
            "budget": MemoryBudget(self._budget.total_bytes),
            "dead_letters": self._dead_letters,
            "parameters": self._parameters,
            "seed": self._seed,
        }
        if self._store.capabilities.pages or not self._recipe.keeps_order:
            session = self._session = JoinSession(
                self._store, self._plan, self._stream_schema, stream_row_bytes=row_bytes, **made
            )
            yield from session.run(batches, pump=self._pump)
            return
        in_order = self._session = OrderedSession(self._store, self._plan, self._stream_schema, **made)
        for batch in batches:
            if batch is not None and batch.num_rows:
                yield from in_order.run([batch])


def _opened(master: MasterStore | TableAddress, disk: int | str | None) -> MasterStore:
    if not isinstance(master, MasterStore):
        return table_at(master, disk_bytes=checked_disk(master, disk)).open()
    if disk is not None:
        raise InvalidSettingError("An open store keeps no copies on the disk: give its address together with `disk`.")
    return master


class KeyedTable(Protocol):
    """A master table, or what tells the columns of one."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def key(self) -> Sequence[str]: ...


def key_pairs(on: On, store: KeyedTable) -> list[tuple[str, str]]:
    """Return the key columns of the stream and of the master table, in the order of the master's key."""
    if isinstance(on, str):
        on = [on]
    pairs = dict(on) if isinstance(on, Mapping) else {name: name for name in on}
    if len(pairs) == 1 and len(store.key) == 1 and not isinstance(on, Mapping):
        only = next(iter(pairs))
        pairs = {only: store.key[0] if only not in store.schema.names else only}
    by_master = {theirs: ours for ours, theirs in pairs.items()}
    if set(by_master) != set(store.key):
        raise UnknownColumnError(
            f"The master table's key is {', '.join(store.key)}, but `on` gives {', '.join(by_master)}: "
            f"name exactly its key columns, or map stream columns to them."
        )
    return [(by_master[name], name) for name in store.key]
