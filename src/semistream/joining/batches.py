"""The join of Arrow record batches with a master table, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

import pyarrow as pa

from semistream.algorithms.demandjoin import DEADLINE
from semistream.algorithms.registry import DEFAULT_ALGORITHM, algorithm_named
from semistream.core.budget import MemoryBudget
from semistream.core.errors import InvalidSettingError, UnknownColumnError
from semistream.core.stats import JoinStats
from semistream.engine.output.output import DeadLetters
from semistream.engine.output.output_plan import OutputPlan, check_join_type, plan_output
from semistream.engine.recipe import Recipe
from semistream.joining.session import JoinSession, typical_row_bytes
from semistream.store.contract import MasterStore
from semistream.store.tables import TableAddress, table_at

Batches: TypeAlias = pa.Table | pa.RecordBatchReader | Iterable[pa.RecordBatch | None]

On: TypeAlias = str | Sequence[str] | Mapping[str, str]


def join(
    batches: Batches,
    master: MasterStore | TableAddress,
    *,
    on: On,
    how: str = "inner",
    algorithm: str = DEFAULT_ALGORITHM,
    memory: int | str = "64MB",
    max_wait: float | None = None,
    columns: Sequence[str] | None = None,
    replace: Mapping[str, str] | None = None,
    suffix: str | None = None,
    dead_letters: DeadLetters | None = None,
    parameters: Mapping[str, float] | None = None,
    seed: int = 0,
) -> JoinedBatches:
    """Join a stream of record batches with a master table, lazily, inside `memory` bytes.

    Rows leave as soon as they are answered, not in the order in which they came. While an iterator is silent, rows that
    wait are still answered. Settings are checked at once; columns and types are checked as soon as the schema of the
    stream is known, which for a bare iterator is when its first batch arrives.

    Args:
        batches: A table, a reader, or any iterable of record batches.
        master: The master table, its path, or a store that `MasterTable.open` returned.
        on: The key columns: a name, a list of names, or a mapping from stream columns to key columns of the master
            table.
        how: "inner", "left", "semi" or "anti".
        algorithm: The name of the join algorithm; `semistream algorithms` lists them.
        memory: What the join may use: bytes, or a text such as "64MB".
        max_wait: The longest time in seconds that a row may wait inside the join, as far as reads allow it. Only for
            DEMANDJOIN.
        columns: The master columns to add; by default all except the key.
        replace: A mapping from stream columns to the master columns that take their place.
        suffix: Renames master columns that clash with stream columns by adding this text.
        dead_letters: A function that takes rows that are too large for the memory, as a record batch, and the reason;
            without it, such a row raises RowTooLargeError.
        parameters: Parameters of the algorithm, by name.
        seed: The random seed.
    """
    check_join_type(how)
    recipe = algorithm_named(algorithm)
    parameters = dict(parameters or {})
    if max_wait is not None:
        if DEADLINE.name not in recipe.parameters:
            raise InvalidSettingError(f"{recipe.name} keeps no deadline: leave out max_wait or choose demandjoin.")
        if not 0 < max_wait < float("inf"):
            raise InvalidSettingError(f"max_wait must be above 0 seconds, but is {max_wait:g}.")
        parameters[DEADLINE.name] = max_wait
    recipe.values(parameters)  # checks them
    store = _opened(master)
    return JoinedBatches(
        batches,
        store,
        on,
        lambda stream, store, pairs: plan_output(
            stream, store.schema, pairs, how=how, columns=columns, replace=replace, suffix=suffix
        ),
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
        plan: Callable[[pa.Schema, MasterStore, list[tuple[str, str]]], OutputPlan],
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
        self._session: JoinSession | None = None
        self._pump = not isinstance(batches, pa.Table | list | tuple)
        known = batches.schema if isinstance(batches, pa.Table | pa.RecordBatchReader) else None
        if isinstance(batches, list | tuple) and batches:
            known = next((batch.schema for batch in batches if batch is not None), None)
        if known is not None:
            self._prepare(known)
        self._source = iter(batches.to_batches() if isinstance(batches, pa.Table) else batches)
        self._output = self._run()

    @property
    def stats(self) -> JoinStats:
        """What the join has counted so far."""
        return self._session.stats if self._session is not None else JoinStats()

    @property
    def schema(self) -> pa.Schema | None:
        """The schema of the output; None while the schema of the stream is not known."""
        return self._plan.schema if self._plan is not None else None

    def __next__(self) -> pa.RecordBatch:
        return next(self._output)

    def close(self) -> None:
        """Stop early."""
        self._output.close()

    def read_all(self) -> pa.Table:
        """Return all that is left as one table."""
        batches = list(self)
        if self._plan is None:
            raise InvalidSettingError(
                "The stream had no batch, so its schema is not known: pass a reader with a schema."
            )
        return pa.Table.from_batches(batches, schema=self._plan.schema)

    def _prepare(self, stream: pa.Schema) -> None:
        plan = self._make_plan(stream, self._store, self._pairs)
        self._store.codec.check(plan.stream_keys, [stream.field(name).type for name in plan.stream_keys])
        self._plan, self._stream_schema = plan, stream

    def _run(self) -> Generator[pa.RecordBatch]:
        first = next((batch for batch in self._source if batch is not None and batch.num_rows), None)
        if first is None:
            return
        if self._plan is None:
            self._prepare(first.schema)
        assert self._plan is not None
        session = self._session = JoinSession(
            self._store,
            self._plan,
            self._stream_schema,
            recipe=self._recipe,
            budget=self._budget,
            stream_row_bytes=typical_row_bytes(first, self._budget.total_bytes),
            dead_letters=self._dead_letters,
            parameters=self._parameters,
            seed=self._seed,
        )
        batches = chain([first], self._source)
        del first  # when it has been joined nobody needs it
        yield from session.run(batches, pump=self._pump)


def _opened(master: MasterStore | TableAddress) -> MasterStore:
    return master if isinstance(master, MasterStore) else table_at(master).open()


def key_pairs(on: On, store: MasterStore) -> list[tuple[str, str]]:
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
