"""Measures where in the master table the matches are: HYBRIDJOIN's reads and what they answer, along the table."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from semistream.algorithms.registry import algorithm_named
from semistream.core.arrays import Float64Array, Int64Array
from semistream_lab.experiments.measuring import rates
from semistream_lab.experiments.measuring.read_log import logged
from semistream_lab.experiments.point import Point, Row
from semistream_lab.measurement import measure


def run(point: Point) -> Row:
    """Measure the part of the table that the options `part` (from 1 on) of `parts` name."""
    parts = int(point.option("parts", 16))
    part = int(point.option("part", 1))
    reads, answered = _along(point.without_options("part", "parts"))
    owner = np.arange(len(reads)) * parts // len(reads)
    mine = owner == part - 1
    tuples = int(answered.sum())
    pages = -(-point.master_rows // (rates.PAGE_BYTES // rates.ROW_BYTES)) * float(mine.mean())
    return {
        "tuples": tuples,
        "uses_per_page": float(answered[mine].sum()) / tuples * 1000 / pages,
        "match_probability": float(answered[mine].sum()) / tuples / int(mine.sum()),
        "reads_per_page_group": float(reads[mine].mean()),
        "page_groups": int(mine.sum()),
        "unread_page_groups": int((reads[mine] == 0).sum()),
    }


@lru_cache(maxsize=2)
def _along(point: Point) -> tuple[Int64Array, Float64Array]:
    """Return the reads of each page group and the tuples that they answered, over a whole run.

    A read that begins at a key counts for the page group where it begins.
    """
    recipe, log = logged(algorithm_named(point.algorithm))
    measured = measure(
        recipe,
        rates.table_of(point),
        rates.workload(point),
        memory=point.memory_bytes,
        tuples=max(1, point.tuples),
        queues=point.queues,
        profile=rates.costs_of(point),
        accounting="papers",
        seed=point.seed,
        partitions=point.partitions,
    )
    pages_per_read = measured.pages_per_read
    pages = -(-point.master_rows // rates.page_rows_of(point))
    if rates.reads_from_key(point):
        log.page_groups = [page // pages_per_read for page in log.page_groups]
    reads, answered = log.by_page_group(-(-pages // pages_per_read))
    return reads, answered.astype(np.float64)
