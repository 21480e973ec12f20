"""Plans the join with one dimension on the driver: columns, types, memory, and what becomes of rows without a match."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_plan

import pyarrow as pa
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from semistream.core.errors import BudgetTooSmallError, InvalidSettingError
from semistream.engine.output.output_plan import OutputPlan, plan_output
from semistream.engine.recipe import Recipe
from semistream.joining.batches import On, key_pairs
from semistream.joining.budget_check import check_budget
from semistream.joining.matched import MatchedColumn, with_matched
from semistream.spark.column_names import ColumnNames
from semistream.spark.dimension import Dimension
from semistream.spark.held_join import Order
from semistream.spark.master_types import arrow_schema
from semistream.spark.output_types import spark_type
from semistream.spark.room.use import ROOM_COLUMNS, parameters_in_room
from semistream.spark.unmatched_rows import Unmatched
from semistream.spark.wide_plan import widened
from semistream.store.address import Address
from semistream.store.contract import MasterStore

STATISTICS = "statistics"
FLAG = "semistream matched"
"""The column that tells rows without a match, where users have asked for none."""


@dataclass(frozen=True)
class JoinTerms:
    """What all dimensions of an operator have in common."""

    names: ColumnNames
    recipe: Recipe
    parameters: Mapping[str, float] | None
    order: Order
    memory_bytes: int
    """What a single dimension has of the memory."""
    is_streaming: bool
    has_room: bool = False


@dataclass(frozen=True)
class PlannedJoin:
    """How rows are joined with one dimension."""

    table: Address
    version: int
    page_count: int
    stream: StructType
    """The columns that come."""
    keys: tuple[int, ...]
    """Which of them are the key."""
    plan: OutputPlan
    """Columns by their positions, with those that only the task needs."""
    master_schema: pa.Schema
    parameters: dict[str, float]
    output: tuple[StructField, ...]
    """The columns that leave."""
    sources: tuple[tuple[bool, int], ...]
    """Where each of them comes from, as `OutputPlan` has it."""
    shown: tuple[int, ...] | None
    flag_at: int | None
    tells_matches: bool
    fate: Unmatched
    keeps_null_keys: bool

    @property
    def declared(self) -> StructType:
        """The columns that leave by their positions, with the statistics."""
        fields = [StructField(f"o{place}", field.dataType, True) for place, field in enumerate(self.output)]
        return StructType([*fields, StructField(STATISTICS, StringType(), True)])


def planned_join(
    stream: StructType,
    dimension: Dimension,
    table: Address,
    store: MasterStore,
    kind: str,
    fate: Unmatched,
    terms: JoinTerms,
) -> PlannedJoin:
    """Return the plan, or raise an error about whatever does not fit."""
    names, known = terms.names, store.schema.names
    routed = fate in ("fail", "park", "dead_letters")
    # Within the plan a column of the stream is written as the master table writes it.
    ours = names.all_spelled(stream.names, known)
    pairs = key_pairs(spelled_on(names, dimension.on, ours, known), store)
    arrow = arrow_schema(_renamed_schema(stream, ours), [key for key, _ in pairs])
    planned = plan_output(
        arrow,
        store.schema,
        pairs,
        how="left" if routed else kind,
        columns=names.all_spelled(dimension.columns, known) if dimension.columns is not None else None,
        replace=names.renaming(dimension.replace, ours, known) if dimension.replace is not None else None,
        suffix=dimension.suffix,
    )
    if routed and kind != "left" and dimension.matched is not None:
        with_matched(replace_plan(planned, how=kind), store.schema, dimension.matched)  # refuses it
    plan, matched = with_matched(planned, store.schema, dimension.matched or (FLAG if routed else None))
    store.codec.check(plan.stream_keys, [arrow.field(key).type for key in plan.stream_keys])
    keys = [arrow.names.index(key) for key in plan.stream_keys]
    added = ROOM_COLUMNS if terms.has_room else ()
    joined_plan, shown = _by_position(plan, keys), None
    if routed or terms.has_room:
        joined_plan, shown = widened(joined_plan, arrow, added)
    with_keys = replace_plan(joined_plan, stream_keys=plan.stream_keys)
    parameters = _fitting_parameters(store, with_keys, pa.schema([*arrow, *added]), terms)
    output, sources = _output_schema(stream, store, plan, matched), plan.sources
    flag_at = shown[-1] if shown is not None and routed else None
    if routed and dimension.matched is None:
        assert shown is not None
        output, sources, shown, matched = output[:-1], sources[:-1], shown[:-1], None
    names.check_distinct([field.name for field in output], [from_master for from_master, _ in plan.sources])
    if terms.is_streaming and not store.capabilities.snapshot:
        _warn_of_replay(table, fate)
    if store.warning is not None:
        warnings.warn(store.warning, stacklevel=3)
    return PlannedJoin(
        table=table,
        version=store.version,
        page_count=store.page_count,
        stream=stream,
        keys=tuple(keys),
        plan=joined_plan,
        master_schema=pa.schema([store.schema.field(name) for name in (*plan.master_columns, *plan.master_keys)]),
        parameters=parameters,
        output=tuple(output),
        sources=sources,
        shown=shown,
        flag_at=flag_at,
        tells_matches=matched is not None,
        fate=fate,
        keeps_null_keys=kind == "left",
    )


def keys_known_from(joins: Sequence[PlannedJoin], place: int) -> tuple[int, tuple[int, ...]]:
    """Return the first dimension whose stream already has the keys of the one at a place, and where they are there."""
    columns = joins[place].keys
    while place and not any(joins[place - 1].sources[column][0] for column in columns):
        columns = tuple(joins[place - 1].sources[column][1] for column in columns)
        place -= 1
    return place, columns


def spelled_on(names: ColumnNames, on: On, ours: Sequence[str], theirs: Sequence[str]) -> On:
    """Return the key columns as those of the stream and of the master table are written."""
    if isinstance(on, Mapping):
        return names.renaming(on, ours, theirs)
    return names.spelled(on, ours) if isinstance(on, str) else names.all_spelled(on, ours)


def _fitting_parameters(store: MasterStore, plan: OutputPlan, stream: pa.Schema, terms: JoinTerms) -> dict[str, float]:
    """Return the parameters with which the memory is enough, or raise BudgetTooSmallError."""
    given = dict(terms.parameters or {})
    tried = [parameters_in_room(terms.recipe, given), given] if terms.has_room else [given]
    for parameters in tried:
        try:
            check_budget(
                terms.memory_bytes,
                store,
                plan,
                stream,
                recipe=terms.recipe,
                parameters=parameters,
                in_order=terms.order == "input",
            )
        except BudgetTooSmallError:
            if parameters is tried[-1]:
                raise
        else:
            return parameters
    raise AssertionError("one of them fits, or the last one is refused")


def _renamed_schema(schema: StructType, names: Sequence[str]) -> StructType:
    return StructType(
        [StructField(name, field.dataType, field.nullable) for name, field in zip(names, schema, strict=True)]
    )


def _warn_of_replay(table: Address, fate: Unmatched) -> None:
    if fate == "park":
        raise InvalidSettingError(
            f"The master table {table.name} has no versions, so parked rows could not be replayed: copy it "
            f"with MasterTable.build, or choose another `unmatched`."
        )
    warnings.warn(
        f"The master table {table.name} has no versions: a micro-batch that is replayed after a failure is joined with "
        f"the rows of that moment; copy the table with MasterTable.build if a replay must give the same rows.",
        stacklevel=4,
    )


def _output_schema(
    stream: StructType, store: MasterStore, plan: OutputPlan, matched: MatchedColumn | None
) -> list[StructField]:
    """Return the columns of the result; those of the stream keep their metadata, in which watermarks travel."""
    fields = []
    for (from_master, index), planned in zip(plan.sources, plan.schema, strict=True):
        if from_master:
            column = plan.master_columns[index]
            fields.append(StructField(planned.name, spark_type(column, store.schema.field(column).type), True))
        else:
            ours = stream.fields[index]
            fields.append(StructField(ours.name, ours.dataType, True, dict(ours.metadata)))
    if matched is not None:
        fields[-1] = StructField(matched.name, BooleanType(), True)
    return fields


def _by_position(plan: OutputPlan, keys: list[int]) -> OutputPlan:
    """Return the plan with columns named by their positions: users' names may have dots or occur twice."""
    fields = [field.with_name(f"o{index}").with_nullable(True) for index, field in enumerate(plan.schema)]
    return OutputPlan(
        plan.how,
        pa.schema(fields),
        plan.sources,
        plan.master_columns,
        tuple(f"c{key}" for key in keys),
        plan.master_keys,
    )
