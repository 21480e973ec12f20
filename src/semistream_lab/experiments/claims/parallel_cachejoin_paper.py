"""Claims of the paper on P- and OP-CACHEJOIN about their rates: phases side by side, and loads beside the probe."""

from __future__ import annotations

from dataclasses import replace

from semistream.core.costs import Operations
from semistream_lab.experiments.claims.comparing import best_everywhere, costs_of, lead, listed, place
from semistream_lab.experiments.evidence import OPERATION_COLUMNS, Evidence
from semistream_lab.experiments.judging import Finding, claim

_C, _P, _OP = "CACHEJOIN", "P-CACHEJOIN", "OP-CACHEJOIN"
_WIDE = 1.25
"""A wide margin is a quarter or more."""
_ALMOST_HALF = 0.6
_ALMOST_TWICE = 1.7


@claim(
    94,
    "op-4a",
    "P-CACHEJOIN serves more than CACHEJOIN at every size of R.",
    "ahead at every size of R",
    ranks="both",
)
def parallel_is_ahead_over_rows(evidence: Evidence) -> Finding:
    return _ahead(evidence, "op-4a", _P)


@claim(
    95,
    "op-4a",
    "P-CACHEJOIN is ahead of CACHEJOIN by a larger factor where R is small.",
    "a larger factor at the smallest R than at the largest",
    ranks="both",
)
def factor_is_larger_for_small_tables(evidence: Evidence) -> Finding:
    factors = evidence.curve("op-4a", _P) / evidence.curve("op-4a", _C)
    holds = bool(factors[0] > factors[-1])
    computing = [_computing_share(evidence, "op-4a", _C, x) for x in evidence.xs("op-4a")]
    hidden = listed(computing, "{:.0%}")
    note = f"Work other than reading, which is what can be hidden, is {hidden} of CACHEJOIN's time along R."
    return Finding(holds, f"{listed(factors, '{:.3f}')} times along R", note)


@claim(
    96,
    "op-4b",
    "P-CACHEJOIN serves more than CACHEJOIN at every memory size.",
    "ahead at every memory size",
    ranks="both",
)
def parallel_is_ahead_over_memory(evidence: Evidence) -> Finding:
    return _ahead(evidence, "op-4b", _P)


@claim(
    97,
    "op-4c",
    "P-CACHEJOIN serves more than CACHEJOIN at every skew.",
    "ahead at every exponent",
    ranks="both",
)
def parallel_is_ahead_over_skew(evidence: Evidence) -> Finding:
    return _ahead(evidence, "op-4c", _P)


@claim(
    98,
    "op-6a",
    "OP-CACHEJOIN serves more than P-CACHEJOIN and CACHEJOIN at every size of R.",
    "ahead of both at every size of R",
    ranks="both",
)
def optimised_is_best_over_rows(evidence: Evidence) -> Finding:
    return _ahead(evidence, "op-6a", _OP)


@claim(
    99,
    "op-6b",
    "OP-CACHEJOIN serves more than P-CACHEJOIN and CACHEJOIN at every memory size, by a wide margin.",
    "at least 1.25 times the better of the two at every memory size",
    ranks="both",
)
def optimised_is_far_ahead_over_memory(evidence: Evidence) -> Finding:
    ahead = lead(evidence, "op-6b", _OP)
    holds = ahead.min_ratio >= _WIDE
    measured = f"{ahead.min_ratio:.2f} to {ahead.max_ratio:.2f} times the best rival"
    reason = f"Least at {place(evidence, 'op-6b', ahead.place)}: {_why_not_twice(evidence)}"
    return Finding(holds, measured, "" if holds else reason)


@claim(
    100,
    "op-6c",
    "OP-CACHEJOIN serves more than P-CACHEJOIN and CACHEJOIN at every skew.",
    "ahead of both at every exponent",
    ranks="both",
)
def optimised_is_best_over_skew(evidence: Evidence) -> Finding:
    return _ahead(evidence, "op-6c", _OP)


@claim(
    101,
    "op-6b",
    "The reading of OP-CACHEJOIN costs almost half of P-CACHEJOIN's in an iteration.",
    "at most 0.6 times as many seconds of reading an iteration",
    ranks="both",
)
def reading_costs_almost_half(evidence: Evidence) -> Finding:
    x = evidence.xs("op-6b")[0]
    ratio = _reading_seconds(evidence, _OP, x) / _reading_seconds(evidence, _P, x)
    return Finding(
        ratio <= _ALMOST_HALF, f"{ratio:.2f} times", "" if ratio <= _ALMOST_HALF else _why_not_twice(evidence)
    )


@claim(
    102,
    "op-6b",
    "OP-CACHEJOIN gets almost twice the master data for an equal cost of reading.",
    "at least 1.7 times the bytes in a second of reading",
    ranks="both",
)
def almost_twice_the_data(evidence: Evidence) -> Finding:
    x = evidence.xs("op-6b")[0]
    sizes = [_per_iteration(evidence, "op-6b", series, x).bytes_read for series in (_OP, _P)]
    ratio = sizes[0] / sizes[1] * _reading_seconds(evidence, _P, x) / _reading_seconds(evidence, _OP, x)
    return Finding(
        ratio >= _ALMOST_TWICE, f"{ratio:.2f} times", "" if ratio >= _ALMOST_TWICE else _why_not_twice(evidence)
    )


@claim(
    106,
    "op-4b",
    "Reading is the major cost of P-CACHEJOIN.",
    "at every memory size reading costs more than any other kind of operation",
    ranks="both",
)
def reading_is_the_major_cost(evidence: Evidence) -> Finding:
    shares, rivals = [], []
    for x in evidence.xs("op-4b"):
        spent = _spent(evidence, x)
        reading = sum(spent.pop(name) for name in ("seeks", "continuations", "bytes_read"))
        rivals.append(max(spent.values()) / reading)
        shares.append(reading / (reading + sum(spent.values())))
    holds = max(rivals) < 1
    measured = (
        f"{listed(shares, '{:.0%}')} of all charges along memory; the next kind at most {max(rivals):.2f} times it"
    )
    reason = "With much memory a read answers so many tuples that putting them out costs more."
    return Finding(holds, measured, "" if holds else reason)


def _ahead(evidence: Evidence, experiment: str, winner: str) -> Finding:
    """Judge that one series is ahead everywhere, and say what its buffers cost where it is not."""
    finding, ahead = best_everywhere(evidence, experiment, winner), lead(evidence, experiment, winner)
    if ahead.is_ahead is False:
        slots = [evidence.value(experiment, series, ahead.place, "waiting_slots") for series in (winner, ahead.rival)]
        lost = (
            f"Its buffers leave {winner} {slots[0] / slots[1]:.0%} of {ahead.rival}'s waiting tuples, which costs more "
            "there than what runs side by side saves."
        )
        return replace(finding, reason=f"{finding.reason} {lost}")
    if ahead.is_ahead is None:
        return replace(finding, reason=f"{finding.reason} The hits of a cache that overwrites at random wander slowly.")
    return finding


def _per_iteration(evidence: Evidence, experiment: str, series: str, x: float) -> Operations:
    iterations = evidence.value(experiment, series, x, "iterations")
    return Operations(
        **{name: evidence.value(experiment, series, x, f"operations_{name}") / iterations for name in OPERATION_COLUMNS}
    )


def _reading_seconds(evidence: Evidence, series: str, x: float) -> float:
    """Return the seconds of reading in an iteration."""
    done = _per_iteration(evidence, "op-6b", series, x)
    reading = Operations(seeks=done.seeks, continuations=done.continuations, bytes_read=done.bytes_read)
    return costs_of(evidence).seconds(reading)


def _computing_share(evidence: Evidence, experiment: str, series: str, x: float) -> float:
    done, costs = _per_iteration(evidence, experiment, series, x), costs_of(evidence)
    reading = Operations(seeks=done.seeks, continuations=done.continuations, bytes_read=done.bytes_read)
    return 1 - costs.seconds(reading) / costs.seconds(done)


def _spent(evidence: Evidence, x: float) -> dict[str, float]:
    """Return what each kind of operation of P-CACHEJOIN costs in an iteration."""
    done, costs = _per_iteration(evidence, "op-4b", _P, x), costs_of(evidence)
    return {name: costs.seconds(Operations(**{name: getattr(done, name)})) for name in OPERATION_COLUMNS}


def _why_not_twice(evidence: Evidence) -> str:
    x = evidence.xs("op-6b")[0]
    done, costs = _per_iteration(evidence, "op-6b", _P, x), costs_of(evidence)
    seek, transfer = done.seeks * costs.seek_seconds, done.bytes_read / costs.bytes_per_second
    return (
        f"Both loaders read from one disk: the latency of two requests overlaps ({seek * 1e3:.1f} ms of a read), the "
        f"transfer ({transfer * 1e3:.1f} ms) does not get faster."
    )
