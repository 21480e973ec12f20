"""The rows that an earlier attempt of a task kept back, taken out of the rows of a later attempt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.row_hash import ROW_HASH, row_hashes


class PinnedRows:
    """A multiset of rows by their hashes; each row that is kept back is taken out of the input just once."""

    def __init__(self, batches: Iterable[pa.RecordBatch], columns: int) -> None:
        """Take the first `columns` columns of these batches."""
        self._columns = columns
        hashes = [self._hashes(batch) for batch in batches]
        pinned = np.concatenate(hashes) if hashes else np.empty(0, dtype=ROW_HASH)
        self._known, counts = np.unique(pinned, return_counts=True)
        self._left: Int64Array = counts.astype(np.int64)

    @property
    def unmet(self) -> int:
        """How many of the rows were not in the input so far."""
        return int(self._left.sum())

    def without(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch that were not kept back."""
        if not len(self._known) or not batch.num_rows:
            return batch
        known = len(self._known)
        ids: Int64Array = np.unique(np.concatenate([self._known, self._hashes(batch)]), return_inverse=True)[1]
        place = np.full(int(ids.max()) + 1, -1, dtype=np.int64)
        place[ids[:known]] = np.arange(known)
        of_rows = place[ids[known:]]
        rows = np.flatnonzero(of_rows >= 0)
        if not len(rows):
            return batch
        rows = rows[np.argsort(of_rows[rows], kind="stable")]
        which, starts, counts = np.unique(of_rows[rows], return_index=True, return_counts=True)
        repeated = np.arange(len(rows)) - np.repeat(starts, counts)
        taken = rows[repeated < np.repeat(self._left[which], counts)]
        self._left -= np.bincount(of_rows[taken], minlength=known)
        leaving = np.ones(batch.num_rows, dtype=np.bool_)
        leaving[taken] = False
        return batch.filter(pa.array(leaving))

    def _hashes(self, batch: pa.RecordBatch) -> np.ndarray[Any, Any]:
        return row_hashes(batch.columns[: self._columns], batch.num_rows)
