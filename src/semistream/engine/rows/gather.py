"""Collects rows that are spread over many record batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int32Array, Int64Array
from semistream.core.compile import kernel


def gather(batches: Sequence[Any], which: Int32Array, rows: Int64Array) -> tuple[pa.RecordBatch, Int64Array]:
    """Return at least one row batch by batch, and the order they come in: output row i is input row order[i].

    Rows of one batch stay in the order given. Each batch is touched once, which is much cheaper than random access. A
    batch that no row comes from may be None.
    """
    if len(batches) == 1:
        return batches[0].take(pa.array(rows)), np.arange(len(rows), dtype=np.int64)
    starts, order = group(which, len(batches))
    grouped = rows[order]
    pieces = [
        batches[index].take(pa.array(grouped[starts[index] : starts[index + 1]]))
        for index in range(len(batches))
        if starts[index] < starts[index + 1]
    ]
    return concatenate(pieces), order


def group(which: Int32Array, groups: int) -> tuple[Int64Array, Int64Array]:
    """Return where each group starts, with the end, and the order that sorts by group; a stable sort by counting."""
    starts = np.zeros(groups + 1, dtype=np.int64)
    order = np.empty(len(which), dtype=np.int64)
    _group(which, starts, order)
    return starts, order


def concatenate(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return one batch with the rows of all."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


@kernel
def _group(which: Int32Array, starts: Int64Array, order: Int64Array) -> None:
    for index in range(which.shape[0]):
        starts[which[index] + 1] += 1
    for group in range(1, starts.shape[0]):
        starts[group] += starts[group - 1]
    place = starts.copy()
    for index in range(which.shape[0]):
        group = which[index]
        order[place[group]] = index
        place[group] += 1
