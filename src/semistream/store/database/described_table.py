"""Checks and samples that all stores of tables in databases share."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from semistream.core.errors import KeyTypeError, MasterNotFoundError, RowTooLargeError, UnknownColumnError
from semistream.core.keys import KeyCodec, KeyCodes
from semistream.store.database.address import DatabaseAddress
from semistream.store.database.contract import Column, Database, Description, ResultTooLargeError

_SAMPLE_ROWS = 200
_SAMPLE_BYTES = 16_000_000


def check_key(database: Database, described: Description, address: DatabaseAddress) -> None:
    """Raise an error unless rows can be found by the key that an address names."""
    name, names = address.table_name, [column.name for column in described.columns]
    for key in address.key:
        if key not in names:
            raise MasterNotFoundError(f"The table {name!r} has no column {key!r}: name its key column by key=.")
    if len(set(address.key)) < len(address.key):
        raise KeyTypeError(f"The key of the table {name!r} names a column twice: name each column once.")
    unfit = [key for key in address.key if not is_ordered(described, (key,))]
    for key in unfit if len(address.key) == 1 else address.key:
        if not database.can_be_key(described.column(key)):
            raise KeyTypeError(
                f"The key column {key!r} of the table {name!r} is of type {described.column(key).declared}, which "
                f"cannot be asked for in its database: copy the table with MasterTable.build, and use the copy."
            )
    if not described.indexed:
        columns = " and ".join(repr(key) for key in address.key)
        raise KeyTypeError(
            f"The table {name!r} has no index on {columns}, so that each look-up would read all of it: "
            f"create an index, or copy it with MasterTable.build."
        )


def folding_warning(key: Sequence[Column], table_name: str) -> str | None:
    """Return a sentence about keys that are equal in the database and not for us; None if there are none."""
    folding = " and ".join(repr(column.name) for column in key if column.folds)
    if not folding:
        return None
    return (
        f"Texts in the key {folding} of the table {table_name!r} can be equal in the database though they differ, as "
        f"by capitals, but here they match byte for byte: if the keys of the stream are written differently, bring "
        f"both sides to one spelling, for example by a view with lower()."
    )


def check_codable(keys: pa.Array, table_name: str) -> KeyCodes:
    """Return the codes of values of one key column; raise an error if one is too high to have a code."""
    encoded = KeyCodec([keys.type]).encode([keys])
    if encoded.usable is not None:
        raise KeyTypeError(
            f"A key of the table {table_name!r} is above 2**63 - 1: make a view that casts it, and name the view."
        )
    return encoded


def is_ordered(described: Description, key: Sequence[str]) -> bool:
    """Say whether the codes of a key have the order that its values have in the database."""
    if len(key) > 1:
        return False
    data_type = described.column(key[0]).type
    types = pa.types
    return bool(types.is_integer(data_type) or types.is_date(data_type) or types.is_timestamp(data_type))


def key_codec(described: Description, key: Sequence[str]) -> KeyCodec:
    """Return what codes the key of a table."""
    return KeyCodec([described.column(name).type for name in key])


def chosen_columns(columns: Sequence[Column], names: Sequence[str], table_name: str) -> list[Column]:
    """Return the columns of these names."""
    by_name = {column.name: column for column in columns}
    for name in names:
        if name not in by_name:
            raise UnknownColumnError(f"The table {table_name!r} has no column {name!r}.")
    return [by_name[name] for name in names]


def sample(database: Database, key: Column, columns: Sequence[Column], table_name: str) -> pa.RecordBatch:
    """Return rows with the lowest and with the highest keys; fewer of them if they are large."""
    count = _SAMPLE_ROWS
    while True:
        try:
            return database.ends(key, columns, count, _SAMPLE_BYTES)
        except ResultTooLargeError as error:
            if count == 1:
                raise RowTooLargeError(
                    f"A row of the table {table_name!r} takes {error.size_bytes // 2} bytes or more: make a view that "
                    f"leaves its values out, and name the view."
                ) from None
            count //= 4 if count >= 4 else 2


def mean_row_bytes(rows: pa.RecordBatch) -> int:
    """Return what a row takes on average."""
    return max(1, -(-rows.nbytes // rows.num_rows)) if rows.num_rows else 64
