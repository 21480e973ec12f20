"""How few reads any choice of pages can do with; derived in docs/experiments/bounds.md."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Float64Array
from semistream.core.compile import kernel
from semistream_lab.cost.root import rising_root


def tuples_per_read_on_schedule(shares: Float64Array, slots: float) -> float:
    """Return the most tuples that a read answers where each page group is read at fixed times: 2·h_S/(Σ√π)².

    `shares` of the tuples that wait ask for each page group, and sum up to 1.
    """
    return 2 * slots / float(np.sqrt(shares).sum()) ** 2


def tuples_per_read_at_best(shares: Float64Array, slots: float) -> float:
    """Return what a read answers at most if keys are drawn independently and the future is not known.

    A page group is best read as the n-th tuple comes for it: it then has (n − 1)/2 waiting on average, where one that
    is read at fixed times has n/2. So Σπ/n is to be as small as Σ(n − 1)/2 ≤ h_S allows, each n being 1 at least: n is
    in proportion to √π. No choice of pages that knows only the past does better, whatever it looks at, since the tuples
    still to come do not depend on it.
    """
    shares = shares[shares > 0]
    roots = np.sqrt(shares)
    highest = (2 * slots + len(shares)) / float(roots.min())

    scale = float(_scale_for(roots, float(slots), highest))
    return 1.0 / float((shares / np.maximum(scale * roots, 1.0)).sum())


def disk_seconds_on_schedule(
    shares: Float64Array, slots: float, *, request_seconds: float, page_group_seconds: float, max_page_groups: int
) -> float:
    """Return the fewest disk seconds a tuple where the table is cut into fixed runs, each read at fixed times.

    A run of n page groups costs c = c_request + n·c_page and has the share π of the tuples; periods in proportion to
    √(c/π) cost (Σ√(c·π))²/(2·h_S) a tuple. The cut with the least Σ√(c·π) is found exactly, among runs of at most
    `max_page_groups`.
    """
    sums = np.concatenate([[0.0], np.cumsum(shares)])
    least = float(_least_roots(sums, request_seconds, page_group_seconds, max_page_groups))
    return least * least / (2 * slots)


@kernel
def _least_roots(sums: Float64Array, request_seconds: float, page_group_seconds: float, max_page_groups: int) -> float:
    page_groups = sums.shape[0] - 1
    least = np.empty(page_groups + 1)
    least[0] = 0.0
    for end in range(1, page_groups + 1):
        # Page groups that nothing asks for may be left out.
        best = least[end - 1] if sums[end] <= sums[end - 1] else np.inf
        for start in range(max(0, end - max_page_groups), end):
            cost = request_seconds + (end - start) * page_group_seconds
            best = min(best, least[start] + np.sqrt(cost * max(0.0, sums[end] - sums[start])))
        least[end] = best
    return float(least[page_groups])


@kernel
def _waiting(scale: float, roots: Float64Array) -> float:
    total = 0.0
    for root in roots:
        total += max(scale * root, 1.0) - 1.0
    return total / 2


_scale_of_waiting = rising_root(_waiting)


@kernel
def _scale_for(roots: Float64Array, slots: float, highest: float) -> float:
    return _scale_of_waiting(roots, slots, 0.0, highest)
