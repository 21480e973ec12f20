"""Claims of the HYBRIDJOIN paper that it proves or derives: no read in vain, theorems 1 and 2, and their factors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from semistream.core.costs import Operations
from semistream_lab.experiments.claims.comparing import costs_of, decided, place
from semistream_lab.experiments.evidence import OPERATION_COLUMNS, Evidence
from semistream_lab.experiments.judging import CALIBRATED, Finding, claim
from semistream_lab.experiments.point import Row
from semistream_lab.experiments.variants import AS_ASSUMED

_THEOREMS = "hybrid-theorems"


def _runs(evidence: Evidence, *, with_trickle: bool) -> Iterator[tuple[str, Row]]:
    """Yield the runs on all inputs; what they do does not depend on costs, only what it takes."""
    unvaried = replace(evidence, variant=AS_ASSUMED) if evidence.variant.factors else evidence
    for series in evidence.series(_THEOREMS):
        if with_trickle or series != "trickle":
            for x in evidence.xs(_THEOREMS):
                for row in unvaried.rows(_THEOREMS, series, x):
                    yield f"{series} at {place(evidence, _THEOREMS, x)}", row


def _number(row: Row, name: str) -> float:
    return float(row[name] or 0)


@claim(
    2, _THEOREMS, "Every read of HYBRIDJOIN serves at least one tuple.", "no read in vain on any input", priced=False
)
def no_read_is_in_vain(evidence: Evidence) -> Finding:
    rows = [row for _, row in _runs(evidence, with_trickle=True)]
    vain = sum(_number(row, "reads_in_vain") for row in rows)
    reads = sum(_number(row, "hybridjoin_reads") for row in rows)
    fewest = min(_number(row, "fewest_answered") for row in rows)
    return Finding(vain == 0, f"{vain:.0f} of {reads:,.0f} reads in vain; the poorest served {fewest:.0f}")


@claim(
    3,
    _THEOREMS,
    "Theorem 1: HYBRIDJOIN reads no page group twice within h_S stream tuples.",
    "at least h_S tuples enter between two reads of a page group, on every input that keeps the queue full",
    priced=False,
)
def no_page_group_is_read_twice_within_a_queue(evidence: Evidence) -> Finding:
    gaps = {name: row["min_gap_queues"] for name, row in _runs(evidence, with_trickle=False)}
    known = {name: float(gap) for name, gap in gaps.items() if gap is not None}
    worst = min(known, key=lambda name: known[name])
    return Finding(known[worst] >= 1, f"at least {known[worst]:.3f} × h_S tuples apart ({worst})")


@claim(4, _THEOREMS, "Theorem 2: at most one read for each stream tuple.", "reads per tuple at most 1", priced=False)
def at_most_one_read_a_tuple(evidence: Evidence) -> Finding:
    reads = {name: _number(row, "reads_per_tuple") for name, row in _runs(evidence, with_trickle=True)}
    worst = max(reads, key=lambda name: reads[name])
    return Finding(reads[worst] <= 1, f"at most {reads[worst]:.3f} reads per tuple ({worst})")


def _slower_than(evidence: Evidence, rival: str, *, with_trickle: bool) -> tuple[float, str]:
    """Return how many times longer HYBRIDJOIN works for a tuple than its rival at worst, and on which input."""
    costs = costs_of(evidence)

    def seconds(row: Row, algorithm: str) -> float:
        counts = {name: _number(row, f"{algorithm}_{name}") for name in OPERATION_COLUMNS}
        return costs.seconds(Operations(**counts)) / _number(row, f"{algorithm}_tuples")

    runs = _runs(evidence, with_trickle=with_trickle)
    return max((seconds(row, "hybridjoin") / seconds(row, rival), name) for name, row in runs)


@claim(
    5,
    _THEOREMS,
    "HYBRIDJOIN is at most 2 times slower than MESHJOIN on any input.",
    "at most 2 times the seconds a tuple with equal h_S and equal reads, on every input",
    standing=CALIBRATED,
)
def never_twice_as_slow_as_meshjoin(evidence: Evidence) -> Finding:
    worst, where = _slower_than(evidence, "meshjoin", with_trickle=False)
    reason = f"On {where} both read as often, and a random read costs more than 2 times a sequential one."
    return decided(worst <= 2, f"at worst {worst:.2f} times ({where})", reason)


@claim(
    6,
    _THEOREMS,
    "HYBRIDJOIN is at most 5 times slower than INLJ on any input.",
    "at most 5 times the seconds of work a tuple, also when tuples come one by one",
    standing=CALIBRATED,
)
def never_five_times_as_slow_as_inlj(evidence: Evidence) -> Finding:
    worst, where = _slower_than(evidence, "inlj", with_trickle=True)
    reason = "A page group for a single tuple costs more than 5 times a page."
    return decided(worst <= 5, f"at worst {worst:.2f} times ({where})", reason)


@claim(
    25,
    _THEOREMS,
    "A part of R that no tuple refers to is never read by HYBRIDJOIN, and is by MESHJOIN.",
    "HYBRIDJOIN reads nothing of the half of R that is not asked for, MESHJOIN does",
    ranked=False,
    priced=False,
)
def unreferenced_parts_are_not_read(evidence: Evidence) -> Finding:
    rows = [row for name, row in _runs(evidence, with_trickle=False) if name.startswith("half")]
    hybrid = sum(_number(row, "hybridjoin_unreferenced_reads") for row in rows)
    mesh = sum(_number(row, "meshjoin_unreferenced_reads") for row in rows)
    share = mesh / sum(_number(row, "meshjoin_reads") for row in rows)
    return Finding(
        hybrid == 0 < mesh, f"HYBRIDJOIN {hybrid:.0f} such reads, MESHJOIN {mesh:,.0f} ({share:.0%} of its reads)"
    )
