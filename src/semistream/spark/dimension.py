"""What `enrich` joins rows with: a master table, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

from semistream.joining.batches import On
from semistream.store.address import TableAddress


@dataclass(frozen=True)
class Dimension:
    """A master table with how it is joined, for `enrich` with a list of them: a star in one operator.

    Rows meet the dimensions in the order of the list, and a later one may use columns that an earlier one has added.

    Args:
        table: The master table, or its address.
        on: The key columns: a name, a list of names, or a mapping from columns of the rows to key columns of the master
            table.
        how: "inner", "left", "semi" or "anti"; None for the `how` of `enrich`.
        columns: The master columns to add; by default all except the key.
        replace: A mapping from columns of the rows to the master columns that take their place.
        suffix: Renames master columns that clash with columns of the rows by adding this string.
        matched: The name of a boolean column to add to a left join, which says whether the row has a match.
        unmatched: What becomes of rows without a match: "drop", "keep", "fail" or "dead_letters".
        name: The name of the dimension in statistics and of its folder in `dead_letters`; by default that of its table.
    """

    table: TableAddress
    _: KW_ONLY
    on: On
    how: str | None = None
    columns: Sequence[str] | None = None
    replace: Mapping[str, str] | None = None
    suffix: str | None = None
    matched: str | None = None
    unmatched: str | None = None
    name: str | None = None
