"""Cost models of the algorithms without a choice of pages: look-ups of each tuple, and rings."""

from __future__ import annotations

from semistream.algorithms.inlj import BATCH
from semistream.core.costs import Operations
from semistream_lab.cost.division import Division
from semistream_lab.cost.queue_models import Iteration


def single_look_ups(division: Division) -> Iteration:
    """INLJ: each tuple reads its page."""
    shares = division.shares.of_page_groups(division.bounds)
    rows = float((shares * division.page_group_rows).sum())
    done = Operations(
        seeks=1,
        bytes_read=rows * division.situation.row_bytes,
        outputs=1,
        removals=1,
        takes=1,
        appends=1,
    )
    costs = division.costs
    around = costs.round_seconds / max(1.0, division.setting[BATCH])
    return Iteration(1.0, 0.0, costs.seconds(done) + rows * costs.page_row_seconds + around)


def ring(division: Division) -> Iteration:
    """MESHJOIN: in each iteration a part of the queue enters, as many parts as the table has page groups."""
    page_groups = division.page_group_count
    part = max(1, division.waiting_slots // page_groups)
    rows = division.situation.master_rows / page_groups
    done = Operations(
        seeks=1 / page_groups,
        continuations=1 - 1 / page_groups,
        bytes_read=rows * division.situation.row_bytes,
        outputs=part,
        removals=part,
        takes=part,
        appends=part,
    )
    costs = division.costs
    return Iteration(float(part), 0.0, costs.seconds(done) + rows * costs.page_row_seconds + costs.round_seconds)
