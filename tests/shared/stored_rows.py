"""Reads all rows of a master table back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.master_table import MasterTable


def stored_rows(table: MasterTable, version: int | None = None) -> pa.Table:
    """Return all rows of a version, in the order of their codes."""
    with table.open(version) as store:
        if not store.page_count:
            return store.schema.empty_table()
        pages = store.read(np.array([0]), np.array([store.page_count - 1]))
        taken = pages.take(np.arange(len(pages.codes)), store.schema.names)
        return pa.Table.from_batches([taken]).cast(store.schema)


def as_multiset(rows: pa.Table | Iterable[dict[str, Any]]) -> list[str]:
    """Return rows so that two tables with the same rows are equal, in whatever order they have them."""
    dicts = rows.to_pylist() if isinstance(rows, pa.Table) else rows
    return sorted(repr(sorted(row.items())) for row in dicts)
