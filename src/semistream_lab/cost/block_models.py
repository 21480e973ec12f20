"""Cost models of the algorithms that cache whole page groups: Partitioned Join and SSIJ."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Float64Array
from semistream.core.costs import Operations
from semistream.engine.cache.page_stages import UsefulBlocks
from semistream.policies.page_choice import FullSlot
from semistream.policies.phasing import Batchwise
from semistream_lab.cost.division import Division
from semistream_lab.cost.queue_models import WARM_UP_QUEUES, Iteration, all_in_memory

_STEADY_QUEUES = 400.0


def full_slots(division: Division) -> Iteration:
    """Partitioned Join: a page group is read when its slot is full, or the fullest one when the queue is.

    The page groups that are used most are cached. In the long run the waiting tuples of each other one are between none
    and the limit with the same chance, so the queue is full at a limit of 2·h_S/n.
    """
    choice = division.recipe.page_choice(division.setting)
    assert isinstance(choice, FullSlot)
    shares = np.sort(division.shares.of_page_groups(division.bounds))[::-1]
    blocks = division.sizes.cache_blocks
    if blocks >= len(shares):
        return all_in_memory(division)
    cached = float(shares[:blocks].sum())
    served = max(1.0, min(float(choice.threshold), 2.0 * division.waiting_slots / (len(shares) - blocks)))
    return _iteration(division, served, cached)


def batches(division: Division, queues: float) -> Iteration:
    """SSIJ: a batch fills the buffer, then all page groups it needs are read.

    A page group of the share π is needed by a batch of b tuples with the probability 1 − exp(−πb). The memory that
    moves between blocks and buffer is followed move by move, as the engine does it.
    """
    intake = division.recipe.intake(division.setting)
    assert isinstance(intake, Batchwise)
    shares = np.sort(division.shares.of_page_groups(division.bounds))[::-1]
    blocks, slots = division.sizes.cache_blocks, division.waiting_slots
    if blocks >= len(shares):
        return all_in_memory(division)
    rate = division.sizes.slots_per_block
    first, last = WARM_UP_QUEUES, WARM_UP_QUEUES + queues
    if last > _STEADY_QUEUES:
        first, last = _STEADY_QUEUES / 2, _STEADY_QUEUES
    queue = float(slots)
    direction, last_gain, passed = 1, 0.0, 0.0
    tuples = missed_tuples = reads = 0.0
    while passed < last * queue:
        batch = max(1.0, slots * intake.share)
        missed, read = _batch(shares, blocks, batch)
        entered = UsefulBlocks.BATCHES_PER_MOVE * batch
        if passed + entered > first * queue:
            tuples += entered / missed
            missed_tuples += entered
            reads += UsefulBlocks.BATCHES_PER_MOVE * read
        passed += entered
        gain = batch / missed / read
        direction = -direction if gain < last_gain else direction
        last_gain = gain
        total = blocks + slots // rate if rate else 0
        if not total:
            continue
        wanted = blocks + direction * max(1, total // UsefulBlocks.SHARE_PER_MOVE)
        wanted = min(max(1, wanted), total - max(1, total // 8), len(shares) - 1)
        slots, blocks = max(rate, slots + (blocks - wanted) * rate), wanted
    return _iteration(division, missed_tuples / reads, 1 - missed_tuples / tuples)


def _batch(shares: Float64Array, blocks: int, batch: float) -> tuple[float, float]:
    """Return the share of the stream that misses the blocks, and the reads of a batch of misses."""
    rest = shares[blocks:]
    missed = max(1e-12, float(rest.sum()))
    return missed, max(1e-9, float(-np.expm1(-rest / missed * batch).sum()))


def _iteration(division: Division, served: float, cached: float) -> Iteration:
    tuples = served / (1 - cached)
    rows = division.situation.master_rows / division.page_group_count
    done = Operations(
        seeks=1,
        bytes_read=rows * division.situation.row_bytes,
        probes=tuples,
        outputs=tuples,
        removals=served,
        takes=tuples,
        appends=served,
    )
    costs = division.costs
    return Iteration(tuples, cached, costs.seconds(done) + rows * costs.page_row_seconds + costs.round_seconds)
