"""Claims of the paper on P- and OP-CACHEJOIN about their parts: buffers, switching between them, and memory."""

from __future__ import annotations

import numpy as np

from semistream_lab.experiments.claims.comparing import lead, listed
from semistream_lab.experiments.claims.other_settings import in_other_settings, worded
from semistream_lab.experiments.claims.parallel_cachejoin_paper import slow_processor
from semistream_lab.experiments.claims.tolerances import CLOSE
from semistream_lab.experiments.evidence import Evidence
from semistream_lab.experiments.judging import ACCOUNTED, Finding, claim

_P = "P-CACHEJOIN"
_TWO_MEGABYTES = 2e6
_RARELY = 0.1
_MINIMAL = 0.05
"""A wait is minimal if it is at most a twentieth of the time that a tuple spends in the disk phase."""
_NEXT_TO_NOTHING = 0.01
"""Switching costs almost nothing if it takes at most a hundredth of a read."""
_SLIGHTLY = 1.2
_MUCH_SMALLER = 0.2
_FIXED = "MESHJOIN, reads of 106 kB"
_QUEUE_SHARE = 12 / 172
"""Of the papers' 172 bytes a waiting tuple, 12 are in the queue and 160 in the hash table."""
_SATURATED, _TRICKLE = "P-CACHEJOIN, stream always ahead", "P-CACHEJOIN, 10,000 tuples/s"


@claim(
    93,
    "op-3",
    "The service rate of P-CACHEJOIN falls when the intermediate buffer grows beyond 2 MB.",
    "the rate falls with each size above 2 MB",
    ranked=False,
)
def rate_falls_beyond_two_megabytes(evidence: Evidence) -> Finding:
    return in_other_settings(evidence, "op-3", _falls_beyond, slow_processor("op-3"))


def _falls_beyond(evidence: Evidence, experiment: str) -> Finding:
    xs, curve = np.array(evidence.xs(experiment)), evidence.curve(experiment, _P)
    beyond = curve[xs >= _TWO_MEGABYTES]
    best = xs[int(curve.argmax())]
    holds = bool((np.diff(beyond) < 0).all())
    measured = f"{listed(curve, '{:.0f}')} tuples/s at {', '.join(f'{x / 1e6:g}' for x in xs)} MB"
    note = (
        f"The best size here is {best / 1e6:g} MB and not 2 MB: the stream phase is always ahead, so a buffer for the "
        "tuples of one read is enough, and all beyond that is taken from the waiting tuples."
    )
    return Finding(holds, measured, note if best != _TWO_MEGABYTES or not holds else "")


@claim(
    103,
    "op-handover",
    "The intermediate buffer is rarely full or empty.",
    "full or empty in at most 10% of the time, the stream being always ahead as where service rates are measured",
    ranked=False,
)
def handover_is_rarely_full_or_empty(evidence: Evidence) -> Finding:
    return in_other_settings(evidence, "op-handover", _rarely_full, slow_processor("op-handover"))


def _rarely_full(evidence: Evidence, experiment: str) -> Finding:
    parts, shares = [], []
    for series in (_SATURATED, _TRICKLE):
        full, empty = (evidence.curve(experiment, series, name) for name in ("full_share", "empty_share"))
        shares.append(float((full + empty).max()))
        parts.append(f"{series.split(', ')[1]}: full {full.max():.0%}, empty {empty.max():.0%} of the time")
    holds = shares[0] <= _RARELY
    reason = (
        "The faster phase waits for the slower one: probing the cache takes microseconds a tuple and a read "
        "milliseconds, so the buffer is full as soon as the stream comes faster than the disk phase takes it, and "
        "empty after every fetch otherwise."
    )
    return Finding(holds, "; ".join(parts), "" if holds else reason)


@claim(
    104,
    "op-handover",
    "Tuples wait in the intermediate buffer for a very short time.",
    "at most 5% of their time in the disk phase, the stream being always ahead",
    ranked=False,
)
def wait_in_handover_is_minimal(evidence: Evidence) -> Finding:
    return in_other_settings(evidence, "op-handover", _wait_is_minimal, slow_processor("op-handover"))


def _wait_is_minimal(evidence: Evidence, experiment: str) -> Finding:
    parts = []
    for series in (_SATURATED, _TRICKLE):
        seconds, share = (
            evidence.curve(experiment, series, name) for name in ("handover_wait_seconds", "handover_wait_share")
        )
        parts.append(f"{series.split(', ')[1]}: {seconds.max():.3f} s, {share.max():.1%} of the wait")
    worst = float(evidence.curve(experiment, _SATURATED, "handover_wait_share").max())
    reason = (
        "The buffer is full while the stream is always ahead, so a tuple waits until all that are before it in the "
        "buffer have found a place in the queue; it is short only while tuples come more slowly than they can be "
        "served."
    )
    return Finding(worst <= _MINIMAL, "; ".join(parts), "" if worst <= _MINIMAL else reason)


@claim(
    105,
    "op-switching",
    "Switching to the other disk buffer costs almost nothing when it is ready.",
    "on the wall clock at most 1% of what a read takes there, past the page cache",
    ranked=False,
    priced=False,
)
def switching_costs_almost_nothing(evidence: Evidence) -> Finding:
    (series,) = evidence.series("op-switching")
    x = evidence.xs("op-switching")[0]
    switch, read, ready, direct = (
        evidence.value("op-switching", series, x, name)
        for name in ("switch_seconds", "read_seconds", "ready_share", "direct")
    )
    measured = (
        f"{switch * 1e6:.0f} µs, {switch / read:.2%} of a read of {read * 1e3:.2f} ms; a buffer was ready "
        f"{ready:.0%} of the time"
    )
    note = "Both are measured on the wall clock of this machine, where they differ from run to run."
    if not direct:
        return Finding(None, measured, f"{note} Its file system has no reads past the page cache, so no disk was read.")
    return Finding(switch <= _NEXT_TO_NOTHING * read, measured, note)


@claim(
    107,
    "op-meshjoin",
    "R-MESHJOIN serves slightly more than MESHJOIN, and its disk buffer does not depend on R.",
    "above MESHJOIN at every size of R, by at most 20%, with a disk buffer that changes by at most 5%; its buffer is "
    "tuned at 2 million rows",
    # Sorted by use, half of the matches come in one burst a round, and runs are no whole number of rounds.
    ranks="shuffled",
)
def reduced_meshjoin_is_slightly_ahead(evidence: Evidence) -> Finding:
    own, growing = (evidence.curve("op-meshjoin", name, "memory_disk_buffer") for name in ("R-MESHJOIN", "MESHJOIN"))
    independent = bool(own.max() / own.min() <= 1 + CLOSE)
    factors = {
        name: evidence.curve("op-meshjoin", "R-MESHJOIN") / evidence.curve("op-meshjoin", name)
        for name in ("MESHJOIN", _FIXED)
    }
    verdicts = {
        name: independent and _slightly_above(evidence, name, float(ratio.max())) for name, ratio in factors.items()
    }
    holds = verdicts["MESHJOIN"]
    measured = (
        f"{listed(factors['MESHJOIN'])} times along R; buffer {own.min() / 1e3:.0f} to {own.max() / 1e3:.0f} kB, "
        f"MESHJOIN's {growing.min() / 1e3:.0f} to {growing.max() / 1e3:.0f} kB; {listed(factors[_FIXED])} times "
        "MESHJOIN with reads of 106 kB"
    )
    if holds is None:
        return Finding(None, measured, "Undecided: somewhere the two differ by less than their 95% intervals.")
    reason = (
        "The smaller a read of MESHJOIN, the more of its time are requests, which R-MESHJOIN's larger reads save; and "
        "with a buffer that is a fixed part of R it is the larger one where R is large."
    )
    turns = verdicts[_FIXED] is not None and verdicts[_FIXED] != holds
    depends_on = (
        f"MESHJOIN's disk buffer: {worded(holds)} if it is one of 2,400 parts of R, {worded(not holds)} if it is 106 kB"
    )
    return Finding(holds, measured, "" if holds else reason, depends_on if turns else "")


def _slightly_above(evidence: Evidence, rival: str, largest: float) -> bool | None:
    return lead(evidence, "op-meshjoin", "R-MESHJOIN", (rival,)).is_ahead if largest <= _SLIGHTLY else False


@claim(
    108,
    "op-4b",
    "Queue, disk buffer and intermediate buffer are much smaller than the hash tables.",
    "at every memory size each at most a fifth of the hash tables",
    ranked=False,
    priced=False,
    standing=ACCOUNTED,
)
def hash_tables_are_much_larger(evidence: Evidence) -> Finding:
    worst: dict[str, float] = {}
    for x in evidence.xs("op-4b"):
        waiting, cache, disk, handover = (
            evidence.value("op-4b", _P, x, f"memory_{name}")
            for name in ("waiting_tuples", "cache", "disk_buffer", "handover_buffer")
        )
        tables = cache + (1 - _QUEUE_SHARE) * waiting
        sizes = {"queue": _QUEUE_SHARE * waiting, "disk buffer": disk, "intermediate buffer": handover}
        worst = {name: max(worst.get(name, 0.0), size / tables) for name, size in sizes.items()}
    measured = ", ".join(f"{name} at most {share:.1%}" for name, share in worst.items()) + " of the hash tables"
    return Finding(max(worst.values()) <= _MUCH_SMALLER, measured)
