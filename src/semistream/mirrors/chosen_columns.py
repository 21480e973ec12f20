"""The columns of a source that a mirror has, and how they differ from those that it had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from semistream.core.errors import SchemaDriftError, UnknownColumnError
from semistream.core.plain_types import plain_schema
from semistream.store.tables import Source


def chosen(source: Source, columns: Sequence[str] | None, what: str) -> Source:
    """Return some columns of a source, all of which may be null: what a source promises today it may drop tomorrow."""
    names = list(source.schema.names if columns is None else columns)
    for name in names:
        if name not in source.schema.names:
            raise UnknownColumnError(
                f"{what} has no column {name!r}: it has {', '.join(source.schema.names) or 'no columns'}."
            )
    schema = nullable(pa.schema([source.schema.field(name) for name in names]))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in source.batches:
            yield pa.RecordBatch.from_arrays([batch.column(name) for name in names], schema=schema)

    return Source(schema, batches(), source.row_count)


def nullable(schema: pa.Schema) -> pa.Schema:
    """Return the same columns without the promise that they have no nulls."""
    return pa.schema([field.with_nullable(True).remove_metadata() for field in schema])


def added_columns(table: pa.Schema, source: pa.Schema) -> tuple[str, ...]:
    """Return the names of columns that only the source has; raise SchemaDriftError for one that it lost or retyped."""
    arriving = plain_schema(source)
    for field in table:
        if field.name not in arriving.names:
            raise SchemaDriftError(
                f"The source has lost the column {field.name!r} ({field.type}): bring it back, or build the mirror "
                f"again without it."
            )
        kind = arriving.field(field.name).type
        if kind != field.type:
            raise SchemaDriftError(
                f"The column {field.name!r} of the source is {kind} now and {field.type} in the mirror: change it "
                f"back, or build the mirror again."
            )
    return tuple(name for name in arriving.names if name not in table.names)
