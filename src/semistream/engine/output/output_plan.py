"""What an output row is made of: which columns of the stream and of the master table, under which names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from semistream.core.errors import InvalidSettingError, NameClashError, UnknownColumnError

JOIN_TYPES = ("inner", "left", "semi", "anti")


@dataclass(frozen=True)
class OutputPlan:
    """The columns of the output, worked out before any data is read.

    `sources` has for each output column its place: (True, i) is column i of the master's `master_columns`, (False, i)
    is column i of the stream.
    """

    how: str
    schema: pa.Schema
    sources: tuple[tuple[bool, int], ...]
    master_columns: tuple[str, ...]
    stream_keys: tuple[str, ...]
    master_keys: tuple[str, ...]

    @property
    def keeps_matched(self) -> bool:
        """Whether stream rows with a match are in the output."""
        return self.how != "anti"

    @property
    def keeps_unmatched(self) -> bool:
        """Whether stream rows without a match are in the output."""
        return self.how in ("left", "anti")

    def taken_columns(self, *, verify: bool) -> tuple[str, ...]:
        """Return the master columns that are taken for the output, then those that `verify` a match and are not."""
        needed = self.master_columns if self.how in ("inner", "left") else ()
        return (*needed, *(name for name in self.master_keys if verify and name not in needed))

    def assemble(self, stream: pa.RecordBatch, master: pa.RecordBatch | None) -> pa.RecordBatch:
        """Return output rows; without master rows the master's columns are null."""
        columns = [
            stream.column(index)
            if not from_master
            else (pa.nulls(stream.num_rows, field.type) if master is None else master.column(index))
            for (from_master, index), field in zip(self.sources, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def plan_output(
    stream: pa.Schema,
    master: pa.Schema,
    on: Sequence[tuple[str, str]],
    *,
    how: str = "inner",
    columns: Sequence[str] | None = None,
    replace: Mapping[str, str] | None = None,
    suffix: str | None = None,
) -> OutputPlan:
    """Return the plan, or raise an error that names what does not fit.

    `on` pairs each key column of the stream with the master's; `columns` are the master's columns to add, by default
    all but its key; `replace` puts a master column in the place of a stream column; `suffix` is added to a master
    column whose name the stream has too.
    """
    check_join_type(how)
    master_keys = tuple(theirs for _, theirs in on)
    replaced = dict(replace or {})
    for name in [*(ours for ours, _ in on), *replaced]:
        _only_column(stream, name, "stream")
    if columns is None:
        columns = [name for name in master.names if name not in master_keys and name not in replaced.values()]
    for name in [*columns, *replaced.values()]:
        _only_column(master, name, "master table")
    master_columns: list[str] = []
    fields: list[pa.Field] = []
    sources: list[tuple[bool, int]] = []

    def add_master(name: str, shown: str) -> None:
        field = master.field(name)
        if name not in master_columns:
            master_columns.append(name)
        fields.append(field.with_name(shown).with_nullable(field.nullable or how == "left"))
        sources.append((True, master_columns.index(name)))

    with_master = how in ("inner", "left")
    for index, field in enumerate(stream):
        if with_master and field.name in replaced:
            add_master(replaced[field.name], replaced[field.name])
        else:
            fields.append(field)
            sources.append((False, index))
    if with_master:
        taken = {field.name for field in fields}
        for name in replaced.values():
            if [field.name for field in fields].count(name) > 1:
                raise NameClashError(
                    f"The stream already has a column {name!r}: choose another replacement, or rename the column."
                )
        for name in columns:
            shown = name
            if name in taken:
                if suffix is None:
                    raise NameClashError(
                        f"Both the stream and the master table have a column {name!r}: "
                        f"leave it out of `columns`, or set `suffix`."
                    )
                shown = name + suffix
                if shown in taken:
                    raise NameClashError(
                        f"The column {name!r} with the suffix {suffix!r} already exists: choose another suffix."
                    )
            taken.add(shown)
            add_master(name, shown)
    stream_keys = tuple(ours for ours, _ in on)
    return OutputPlan(how, pa.schema(fields), tuple(sources), tuple(master_columns), stream_keys, master_keys)


def check_join_type(how: str) -> None:
    """Raise an error unless `how` is a kind of join."""
    if how not in JOIN_TYPES:
        raise InvalidSettingError(f"{how!r} is not a join type: choose one of {', '.join(JOIN_TYPES)}.")


def _only_column(schema: pa.Schema, name: str, where: str) -> None:
    count = schema.names.count(name)
    if count == 0:
        raise UnknownColumnError(f"The {where} has no column {name!r}: it has {', '.join(schema.names)}.")
    if count > 1:
        raise NameClashError(f"The {where} has {count} columns named {name!r}: rename all but one.")
