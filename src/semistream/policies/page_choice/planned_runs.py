"""Read where most is waited for, in runs of neighbours."""

from __future__ import annotations

from collections import deque

import numpy as np

from semistream.core.arrays import Int32Array, Int64Array, UInt8Array
from semistream.core.compile import kernel
from semistream.policies.contract import Moment, PageChoice, Queue

_MAX_STEPS = 24
_NONE = np.empty(0, dtype=np.int64)


class PlannedRuns(PageChoice):
    """Chooses the runs of neighbouring page groups that serve most for what they cost, and reads them in their order.

    A page group scores the number of tuples that wait for it times the time, in tuples, that the oldest of them has
    waited; to read it costs its bytes, and to start a run costs a request. A plan maximises score − θ · cost over all
    sets of runs, by one scan with two states (reading, skipping), and θ is such that about `share` of the waiting
    tuples leave. So a gap between two runs is read, too, where that costs less than another request, and no tuple
    waits longer than `patience` times what can wait. Under heavy uniform load a plan becomes a scan of the whole
    table, under a trickle it becomes single look-ups.

    Without `gaps` no page is read for which no tuple waits. With a deadline, tuples that have waited for half of it are
    served before all others.

    `run_page_groups` bounds what one call returns. While no input is pending and the queue is not full, a plan serves
    all that wait.
    """

    needs_since = True
    merges = True

    def __init__(
        self,
        *,
        request_seconds: float,
        page_group_seconds: float,
        run_page_groups: int,
        share: float = 0.3,
        patience: float = 3.0,
        by_age: bool = True,
        gaps: bool = True,
        deadline_seconds: float = 0.0,
    ) -> None:
        self.deadline_seconds = deadline_seconds
        self._gaps = gaps
        self.learn_costs(request_seconds, page_group_seconds)
        self._run_page_groups = max(1, run_page_groups)
        self._share = share
        self._patience = patience
        self._by_age = by_age
        self._reads: deque[Int64Array] = deque()
        """What is left of the plan."""
        self.theta = 0.0
        """What a read of a page group had to be worth in the last plan."""

    def learn_costs(self, request_seconds: float, page_group_seconds: float) -> None:
        """Plan with these costs from now on."""
        # Only the ratio matters: costs are counted in reads of a page group.
        self._request_cost = request_seconds / page_group_seconds
        self._run_cost = self._request_cost if self._gaps else 0.0

    def choose(self, queue: Queue, moment: Moment) -> Int64Array:
        """Return the next runs of the plan, and make a new plan when the old one is done."""
        if moment.overdue_before and self._is_late(queue, moment.overdue_before):
            self._divide(self._plan_for_late(queue, moment.overdue_before))
        while self._reads:
            run = self._reads.popleft()
            if _is_waited_for(queue.counts, run):
                return run
        self._divide(self._plan(queue, 1.0 if not moment.input_pending else self._share))
        return self._reads.popleft() if self._reads else _NONE

    def _is_late(self, queue: Queue, overdue_before: int) -> bool:
        """Say whether the oldest tuple has waited for half of its deadline, and the plan does not serve it."""
        oldest = queue.oldest()
        if oldest < 0 or queue.since[oldest] >= overdue_before:
            return False
        return not any(oldest in run for run in self._reads if run[0] <= oldest <= run[-1])

    def _divide(self, planned: Int64Array) -> None:
        """Divide a plan into reads."""
        step = self._run_page_groups
        self._reads = deque(planned[start : start + step] for start in range(0, len(planned), step))

    def following(self, reads: int) -> list[Int64Array]:
        """Return the next reads of the plan."""
        return [self._reads[place] for place in range(min(reads, len(self._reads)))]

    def _plan(self, queue: Queue, share: float) -> Int64Array:
        if share >= 1.0:
            return np.flatnonzero(queue.counts)
        wanted = max(1, int(share * queue.count))
        steps = np.empty(queue.page_group_count, dtype=np.uint8)
        limit = int(self._patience * queue.capacity)
        low, high = 0.0, float("inf")
        theta = self.theta or self._guess(queue)
        for _ in range(_MAX_STEPS):
            served, count = self._choose_runs(queue, theta, limit, steps)
            if wanted <= served <= 1.5 * wanted + 1:
                break
            if served < wanted:
                high = theta
                theta = theta / 2 if low == 0.0 else (low + high) / 2
            else:
                low = theta
                theta = theta * 2 if high == float("inf") else (low + high) / 2
        else:
            # Page groups that score the same come into a plan together: better too many than too few.
            theta = low
            served, count = self._choose_runs(queue, theta, limit, steps)
        self.theta = theta
        planned = np.empty(count, dtype=np.int64)
        _collect(steps, planned)
        return planned

    def _plan_for_late(self, queue: Queue, overdue_before: int) -> Int64Array:
        """Plan for all tuples that are overdue, and for others only where they are worth what they were last time."""
        steps = np.empty(queue.page_group_count, dtype=np.uint8)
        limit = queue.entered - overdue_before + 1
        _, count = self._choose_runs(queue, self.theta or self._guess(queue), limit, steps, self._request_cost)
        planned = np.empty(count, dtype=np.int64)
        _collect(steps, planned)
        return planned

    def _choose_runs(
        self, queue: Queue, theta: float, limit: int, steps: UInt8Array, run_cost: float | None = None
    ) -> tuple[int, int]:
        run_cost = self._run_cost if run_cost is None else run_cost
        chosen: tuple[int, int] = _choose_runs(
            queue.counts, queue.since, queue.entered, limit, theta, run_cost, self._by_age, steps
        )
        return chosen

    def _guess(self, queue: Queue) -> float:
        """Return the mean score, from which the search for θ starts."""
        waited = queue.counts > 0
        if not self._by_age:
            return max(1e-9, queue.count / max(1, int(waited.sum())))
        ages = queue.entered - queue.since[waited] + 1
        return max(1e-9, float((queue.counts[waited] * ages).mean()))


@kernel
def _is_waited_for(counts: Int32Array, page_groups: Int64Array) -> bool:
    for index in range(page_groups.shape[0]):  # noqa: SIM110
        if counts[page_groups[index]] > 0:
            return True
    return False


@kernel
def _choose_runs(
    counts: Int32Array,
    since: Int64Array,
    entered: int,
    limit: int,
    theta: float,
    request_cost: float,
    by_age: bool,
    steps: UInt8Array,
) -> tuple[int, int]:
    """Mark the page groups of the best runs in `steps`; return how many tuples they serve, and their number."""
    page_groups = counts.shape[0]
    reading, skipping = -1e300, 0.0
    for page_group in range(page_groups):
        count = counts[page_group]
        gain = -theta
        if count > 0:
            age = entered - since[page_group] + 1
            score = np.float64(count) * age if by_age else np.float64(count)
            # What pays for a run of its own is always read.
            gain += max(score, theta * (request_cost + 2.0)) if age > limit else score
        step = 0
        started = skipping - theta * request_cost
        if reading > skipping:
            step |= 4
            skipped = reading
        else:
            skipped = skipping
        if reading >= started:
            step |= 2
            read = reading + gain
        else:
            read = started + gain
        reading, skipping = read, skipped
        steps[page_group] = step
    served, number = 0, 0
    is_reading = reading > skipping
    for offset in range(page_groups):
        page_group = page_groups - 1 - offset
        step = steps[page_group]
        if is_reading:
            steps[page_group] = 1
            served += counts[page_group]
            number += 1
            is_reading = step & 2 != 0
        else:
            steps[page_group] = 0
            is_reading = step & 4 != 0
    return served, number


@kernel
def _collect(steps: UInt8Array, planned: Int64Array) -> None:
    written = 0
    for page_group in range(steps.shape[0]):
        if steps[page_group] == 1:
            planned[written] = page_group
            written += 1
