"""The column of a left join that says which rows have found a match."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from semistream.core.errors import InvalidSettingError, NameClashError
from semistream.core.value_widths import fixed_width
from semistream.engine.output.output_plan import OutputPlan

_WIDE = 1 << 20


@dataclass(frozen=True)
class MatchedColumn:
    """Turns the last column of a join's output, a key of the master table, into whether there is one.

    Keys of master rows are never null, so that the join itself needs to know nothing of it.
    """

    name: str

    @property
    def field(self) -> pa.Field:
        """The column as users see it."""
        return pa.field(self.name, pa.bool_(), nullable=False)

    def schema(self, joined: pa.Schema) -> pa.Schema:
        """Return the schema of rows after `with_flags`."""
        return joined.set(len(joined) - 1, self.field)

    def with_flags(self, joined: pa.RecordBatch) -> pa.RecordBatch:
        """Return joined rows with the column."""
        columns = [*joined.columns[:-1], joined.column(joined.num_columns - 1).is_valid()]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema(joined.schema))


def with_matched(plan: OutputPlan, master: pa.Schema, name: str | None) -> tuple[OutputPlan, MatchedColumn | None]:
    """Return the plan of a join that also brings what `MatchedColumn` needs, if the column is wanted."""
    if name is None:
        return plan, None
    if not isinstance(name, str) or not name:
        raise InvalidSettingError(f"matched must be the name of a new column, but is {name!r}.")
    if plan.how != "left":
        raise InvalidSettingError(
            f"matched is for left joins, and this is {_article(plan.how)} join: leave it out, or set how to 'left'."
        )
    if name in plan.schema.names:
        raise NameClashError(f"There is already a column {name!r}: choose another name for `matched`.")
    # A key that is in the output anyway costs nothing, else the narrowest costs least.
    key = min(plan.master_keys, key=lambda key: (key not in plan.master_columns, _width(master.field(key).type)))
    columns = plan.master_columns if key in plan.master_columns else (*plan.master_columns, key)
    schema = plan.schema.append(master.field(key).with_name(name).with_nullable(True))
    sources = (*plan.sources, (True, columns.index(key)))
    return replace(plan, schema=schema, sources=sources, master_columns=columns), MatchedColumn(name)


def _width(data_type: pa.DataType) -> int:
    return fixed_width(data_type) or _WIDE


def _article(how: str) -> str:
    return f"{'an' if how[0] in 'aeiou' else 'a'} {how}"
