"""Says how the rows of a table lie in its pages: which types are stored, in which order, and where the code is."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from semistream.core.errors import InvalidSettingError, KeyTypeError, NameClashError, UnknownColumnError
from semistream.core.keys import KeyCodec
from semistream.core.plain_types import plain_column, plain_schema

CODE_FIELD = pa.field("__code", pa.int64(), nullable=False)


class RowLayout:
    """The stored form of rows with a given schema and key.

    A key that is a single column of 64 or 32 bits whose value is its code comes first in a page. Any other key is
    preceded by a hidden column with the code, so that it is not hashed again on a read. While rows are sorted they are
    *coded rows*: the code, then the columns in the order of a page.
    """

    def __init__(self, schema: pa.Schema, key: Sequence[str]) -> None:
        self.key = tuple(key)
        names = schema.names
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise NameClashError(f"The master table has several columns called {twice[0]!r}: rename them.")
        for name in self.key:
            if name not in names:
                raise UnknownColumnError(f"The master table has no column {name!r}: name its key column.")
        if len(set(self.key)) < len(self.key):
            raise InvalidSettingError("The key names a column twice: name each key column once.")
        self.schema = plain_schema(schema)  # only plain types can be parted into pages that stand alone
        self.codec = KeyCodec([self.schema.field(name).type for name in self.key])
        width = _code_width(self.schema.field(self.key[0]).type) if self.codec.exact else None
        self.hidden_code = width is None
        self.code_bytes = width or 8
        first = [] if self.hidden_code else [self.key[0]]
        self.order = first + [name for name in self.schema.names if name not in first]
        columns = [self.schema.field(name) for name in self.order]
        self.coded_schema = pa.schema([CODE_FIELD, *columns])
        self.page_schema = self.coded_schema if self.hidden_code else pa.schema(columns)
        self._chosen: dict[tuple[str, ...], pa.Schema] = {}
        shift = 1 if self.hidden_code else 0
        self._positions = {name: place + shift for place, name in enumerate(self.order)}

    def position(self, name: str) -> int:
        """Return where a column stands in a page."""
        try:
            return self._positions[name]
        except KeyError:
            raise UnknownColumnError(
                f"The master table has no column {name!r}: it has {', '.join(self.schema.names)}."
            ) from None

    def chosen_schema(self, names: tuple[str, ...]) -> pa.Schema:
        """Return the schema of some columns; made once for each choice."""
        schema = self._chosen.get(names)
        if schema is None:
            schema = self._chosen[names] = pa.schema([self.schema.field(name) for name in names])
        return schema

    def coded(self, codes: pa.Array, columns: dict[str, pa.Array]) -> pa.RecordBatch:
        """Return coded rows from codes and columns of the stored types."""
        return pa.RecordBatch.from_arrays([codes, *(columns[name] for name in self.order)], schema=self.coded_schema)

    def page_rows(self, coded: pa.RecordBatch) -> pa.RecordBatch:
        """Return coded rows as a page holds them."""
        if self.hidden_code:
            return coded
        return pa.RecordBatch.from_arrays(coded.columns[1:], schema=self.page_schema)

    def coded_rows(self, codes: pa.Array, page_rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of pages as coded rows."""
        if self.hidden_code:
            return page_rows
        return pa.RecordBatch.from_arrays([codes, *page_rows.columns], schema=self.coded_schema)

    def key_columns(self, coded: pa.RecordBatch) -> list[pa.Array]:
        """Return the key columns of coded rows."""
        return [coded.column(self.order.index(name) + 1) for name in self.key]


def stored_column(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return a column in its stored type."""
    try:
        return plain_column(column, data_type)
    except pa.ArrowException as error:
        raise KeyTypeError(f"A column of type {column.type} cannot be stored as {data_type}: {error}") from None


def _code_width(data_type: pa.DataType) -> int | None:
    """Return the bytes of a key whose stored bits are its code, or None if they are not."""
    types = pa.types
    if types.is_int64(data_type):
        return 8
    if types.is_int32(data_type) or types.is_date32(data_type):
        return 4
    ticks = types.is_timestamp(data_type) or types.is_duration(data_type) or types.is_time64(data_type)
    return 8 if ticks and data_type.unit in ("us", "ns") else None
