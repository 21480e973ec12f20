"""Puts master tables into an order of use that has nothing to do with that of their keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from stored_rows import stored_rows

from semistream.master_table import MasterTable


def ordered_by_use(table: MasterTable, seed: int = 3) -> MasterTable:
    """Put the rows of a table, if it has several keys, into an order of random use, in classes of a few keys on."""
    with table.open() as store:
        keys = list(store.key)
    rows = stored_rows(table).select(keys)
    if len(set(map(str, rows.to_pylist()))) > 1:
        counts = np.random.default_rng(seed).permutation(len(rows)) ** 2
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("semistream.store.paged.write.heat._SMALLEST_CLASS", 5)
            table.recluster(rows.append_column("count", pa.array(counts)))
    return table
