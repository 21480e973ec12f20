"""Cost model of DEMANDJOIN, on the bound for any choice of pages."""

from __future__ import annotations

import numpy as np

from semistream.algorithms.demandjoin import BALANCE
from semistream.core.costs import Operations
from semistream_lab.cost.division import Division
from semistream_lab.cost.queue_models import Iteration

_CACHE_QUALITY = 0.95
"""How near admission by frequency comes to caching the most frequent keys: the part of the cache that they hold.
Measured, not derived, as are the next two."""
_PLAN_LOSS = 1.05
"""What plans lose against reading each page just when it is due: they come at whole times."""
_RUN_LENGTH = 6.0
"""How long runs are, in what could be read in the time of a request."""
_CACHE_SHARES = np.geomspace(0.005, 0.6, 64)
"""How much of the memory the cache may take where the engine balances it with the waiting tuples."""


def planned_runs(division: Division) -> Iteration:
    """Read each page after a time in proportion to 1/√π, which leaves the fewest reads for a queue of h_S tuples.

    Periods of a/√π fill the queue with Σ π·(a/√π)/2 tuples, so a = 2·h_S/Σ√π and one page is read for every
    2·h_S/(Σ√π)² tuples. Neighbours are read together, so a request brings as much as one read may. The disk works
    while pages are joined, and the latency of a request passes while others are on their way, so only what takes
    longest counts: latencies, bytes, or the processors.
    """
    sizes = division.sizes
    if sizes.holds_table:
        return _from_the_cache_alone(division)
    if not division.setting[BALANCE]:
        return _iteration(division, sizes.cache_tuples, float(division.waiting_slots))
    # As the engine does: the share that lets most tuples be served if what a read serves grows with the queue.
    memory = sizes.cache_tuples * sizes.cached_bytes + division.waiting_slots * sizes.waiting_bytes
    cached = (_CACHE_SHARES * memory / sizes.cached_bytes).astype(np.int64)
    answered = np.array([division.shares.of_first_ranks(int(_CACHE_QUALITY * entries)) for entries in cached])
    best = int(((1 - _CACHE_SHARES) / np.maximum(1 - answered, 1e-9)).argmax())
    return _iteration(division, int(cached[best]), (1 - _CACHE_SHARES[best]) * memory / sizes.waiting_bytes)


def _iteration(division: Division, cache_tuples: int, slots: float) -> Iteration:
    shares, costs = division.shares, division.costs
    kept = int(_CACHE_QUALITY * cache_tuples)
    if cache_tuples >= division.situation.master_rows:
        return _from_the_cache_alone(division)
    chances = np.clip((kept - shares.rank_edges[:-1]) / shares.group_sizes, 0.0, 1.0)
    missed = shares.missed_by_page_group(division.bounds, chances)
    total = float(missed.sum())
    if total < 1e-9:
        return _from_the_cache_alone(division)
    roots = float(np.sqrt(missed / total).sum())
    served = max(1.0, 2 * slots / roots**2 / _PLAN_LOSS)
    tuples = served / total
    rows = division.situation.master_rows / division.page_group_count
    request_pages = costs.seek_seconds * costs.bytes_per_second / (rows * division.situation.row_bytes)
    requests = 1 / max(1.0, min(_RUN_LENGTH * request_pages, division.sizes.run_page_groups))
    latency = costs.seconds(Operations(seeks=requests / costs.max_in_flight))
    disk = max(latency, costs.seconds(Operations(bytes_read=rows * division.situation.row_bytes)))
    return Iteration(tuples, 1 - total, max(disk, _processors_seconds(division, tuples, served, rows)))


def _from_the_cache_alone(division: Division) -> Iteration:
    return Iteration(1.0, 1.0, _processors_seconds(division, 1.0, 0.0, 0.0))


def _processors_seconds(division: Division, tuples: float, served: float, rows: float) -> float:
    """What the phases take to let `tuples` leave, `served` of them by a page of `rows` rows.

    Side by side it is the longer of the two. A stream phase that would take longer passes a part x of the tuples on as
    they are: that part costs it c_S + c_AI instead of c_S + c_H and c_O or c_AI, and the other phase c_H, c_O and, but
    for those it would have taken anyway, c_S.
    """
    costs, hits = division.costs, tuples - served
    taken = Operations(takes=tuples, probes=tuples, outputs=hits)
    read = Operations(probes=rows, frequency_checks=rows, outputs=served, removals=served, appends=served)
    if not division.sizes.handover_slots:
        return costs.seconds(taken) + costs.seconds(read)
    stream = costs.seconds(taken) + costs.seconds(Operations(hand_overs=served))
    disk = costs.seconds(read) + costs.seconds(Operations(takes=served))
    relief = stream - costs.seconds(Operations(takes=tuples, hand_overs=tuples))
    burden = costs.seconds(Operations(takes=hits, probes=tuples, outputs=hits))
    passed = min(1.0, max(0.0, (stream - disk) / (relief + burden))) if relief + burden else 0.0
    return max(stream - passed * relief, disk + passed * burden)
