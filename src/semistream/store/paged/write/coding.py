"""Brings rows from outside to the stored form and gives each its key code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from semistream.core.errors import KeyTypeError, NullKeyError, SchemaDriftError
from semistream.core.plain_types import plain_batches, plain_schema
from semistream.store.paged.format.row_layout import CODE_FIELD, RowLayout, stored_column
from semistream.store.paged.write.row_sources import Source

Progress = Callable[[str, int, int | None], None]
"""Is told what is being done, how many rows are done, and how many there are if that is known."""


def silent(what: str, done: int, total: int | None) -> None:
    """Tell nobody about the progress."""


def check_names(layout: RowLayout, names: Sequence[str]) -> None:
    """Raise SchemaDriftError if one of these columns is not in the table."""
    for name in names:
        if name not in layout.schema.names:
            raise SchemaDriftError(
                f"The table has no column {name!r}, so its values would be lost: leave it out, or build the table "
                f"again with it."
            )


def check_columns(layout: RowLayout, schema: pa.Schema) -> None:
    """Raise SchemaDriftError unless the columns are those of the table, in any order and with the same types."""
    check_names(layout, schema.names)
    arriving = plain_schema(schema)
    for field in layout.schema:
        places = arriving.get_all_field_indices(field.name)
        if len(places) != 1:
            problem = "is missing" if not places else "stands there several times"
            raise SchemaDriftError(f"The column {field.name!r} ({field.type}) {problem}: give each column once.")
        if arriving.field(places[0]).type != field.type:
            raise SchemaDriftError(
                f"The column {field.name!r} is {arriving.field(places[0]).type}, but it is {field.type} in the table: "
                f"cast it, or build the table again."
            )


def coded_rows(layout: RowLayout, source: Source, piece_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the coded rows of a source in small pieces; raise NullKeyError with the count if keys are null."""
    null_count = 0
    for batch in source.batches:
        for piece in pieces(batch, piece_bytes):
            keys = [stored_column(piece.column(name), layout.schema.field(name).type) for name in layout.key]
            if null_count or any(key.null_count for key in keys):
                # From here on only the count is of interest.
                null_count += layout.codec.encode(keys).null_count
                continue
            encoded = layout.codec.encode(keys)
            if encoded.usable is not None:
                raise KeyTypeError(
                    f"{int((~encoded.usable).sum())} master rows have a key that does not fit 64 bits: "
                    f"cast the key to a decimal or a string."
                )
            columns = {field.name: stored_column(piece.column(field.name), field.type) for field in layout.schema}
            rows = layout.coded(pa.array(encoded.codes), columns)
            check_required(rows)
            yield rows
    if null_count:
        raise null_key_error(null_count)


def delete_schema(layout: RowLayout, schema: pa.Schema) -> pa.Schema:
    """Return the schema of coded deletes, or raise an error if the key columns are missing or cannot be compared."""
    for name in layout.key:
        if schema.get_field_index(name) < 0:
            raise SchemaDriftError(f"The key column {name!r} is missing in the deletes: give every key column.")
    fields = [plain_schema(schema).field(name) for name in layout.key]
    layout.codec.check(layout.key, [field.type for field in fields])
    return pa.schema([CODE_FIELD, *fields])


def coded_deletes(layout: RowLayout, source: Source, schema: pa.Schema, piece_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the codes and keys of deletes; keys that no row can have are left out."""
    fields = list(schema)[1:]
    for batch in source.batches:
        for piece in pieces(batch.select(list(layout.key)), piece_bytes):
            keys = [stored_column(column, field.type) for column, field in zip(piece.columns, fields, strict=True)]
            encoded = layout.codec.encode(keys)
            coded = pa.RecordBatch.from_arrays([pa.array(encoded.codes), *keys], schema=schema)
            yield coded if encoded.usable is None else coded.filter(pa.array(encoded.usable))


def pieces(batch: pa.RecordBatch, piece_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield a batch, with plain types, in slices of about `piece_bytes`."""
    for plain in plain_batches(batch, piece_bytes):
        rows = max(1, plain.num_rows * piece_bytes // max(1, plain.nbytes))
        for start in range(0, plain.num_rows, rows):
            yield plain.slice(start, rows)


def check_required(rows: pa.RecordBatch) -> None:
    """Raise SchemaDriftError if a column has nulls that its schema rules out."""
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if not field.nullable and column.null_count:
            raise SchemaDriftError(
                f"The column {field.name!r} has nulls although its schema says that it has none: fill them in."
            )


def null_key_error(count: int) -> NullKeyError:
    """Return the error that says how many keys are null."""
    return NullKeyError(f"{count} master rows have a null key: remove them or give them a key.")
