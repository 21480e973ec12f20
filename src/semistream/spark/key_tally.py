"""Counts which keys a task sees most often, and which of them the master table does not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.spark.statistics import CountedKeys

_MAX_TEXT = 80
_KEPT_FACTOR = 16
"""How many times as many keys are counted as are told; what is rarer is forgotten."""


class KeyTally:
    """The most frequent keys of a task, in bounded memory: counts are at least what is told.

    Of each batch the most frequent keys are added to those known. Costs a look-up of every row in a hash table.
    """

    def __init__(self, keys: Sequence[str], count: int) -> None:
        self._keys = tuple(keys)
        self._count = count
        self._all: Counter[str] = Counter()
        self._unmatched: Counter[str] = Counter()

    def counting(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches as they come, counted."""
        for batch in batches:
            self._add(self._all, batch)
            yield batch

    def count_unmatched(self, batch: pa.RecordBatch, rows: Int64Array) -> None:
        """Count rows of a batch that have no match; null keys are left out."""
        if len(rows):
            self._add(self._unmatched, batch.select(list(self._keys)).take(pa.array(rows)))

    def hottest(self) -> CountedKeys:
        """Return the most frequent keys."""
        return self._all.most_common(self._count)

    def most_unmatched(self) -> CountedKeys:
        """Return the most frequent keys without a match."""
        return self._unmatched.most_common(self._count)

    def _add(self, counter: Counter[str], batch: pa.RecordBatch) -> None:
        columns = [batch.column(name) for name in self._keys]
        for row, count in self._frequent(columns):
            counter[_text([column[row].as_py() for column in columns])] += count
        if len(counter) > 4 * _KEPT_FACTOR * self._count:
            kept = counter.most_common(_KEPT_FACTOR * self._count)
            counter.clear()
            counter.update(dict(kept))

    def _frequent(self, columns: Sequence[pa.Array]) -> Iterator[tuple[int, int]]:
        """Yield the rows in which the most frequent keys without a null stand first, with how often these occur."""
        numbers = np.zeros(len(columns[0]), dtype=np.int64)
        valid = np.ones(len(numbers), dtype=np.bool_)
        for column in columns:
            if column.null_count:
                valid &= column.is_valid().to_numpy(zero_copy_only=False)
            encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            indices = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
            numbers = np.unique(numbers * len(encoded.dictionary) + indices, return_inverse=True)[1]
        rows = np.flatnonzero(valid)
        _, firsts, counts = np.unique(numbers[rows], return_index=True, return_counts=True)
        for place in np.argsort(-counts, kind="stable")[: _KEPT_FACTOR * self._count].tolist():
            yield int(rows[firsts[place]]), int(counts[place])


def _text(values: Sequence[object]) -> str:
    text = ", ".join(str(value) for value in values)
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
