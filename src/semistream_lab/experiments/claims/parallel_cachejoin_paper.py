"""Claims of the paper on P- and OP-CACHEJOIN about their rates: phases side by side, and loads beside the probe.

The axis of its Figure 3 ends at 13,200 tuples a second, where the assumed processor serves eight times as many, and it
counts half of the cost of a read where two connections load. So claims about rates are judged with a processor as slow
as that axis says, too, and those about OP-CACHEJOIN with connections that share no bandwidth.
"""

from __future__ import annotations

from dataclasses import replace

from semistream.core.costs import CostProfile, Operations
from semistream_lab.experiments.claims.comparing import best_everywhere, costs_of, lead, listed, place, undecided
from semistream_lab.experiments.claims.other_settings import OtherSetting, in_other_settings
from semistream_lab.experiments.evidence import OPERATION_COLUMNS, Evidence
from semistream_lab.experiments.judging import Finding, claim

_C, _P, _OP = "CACHEJOIN", "P-CACHEJOIN", "OP-CACHEJOIN"
_WIDE = 1.25
"""A wide margin is a quarter or more."""
_ALMOST_HALF = 0.6
_ALMOST_TWICE = 1.7


def slow_processor(experiment: str) -> OtherSetting:
    """Return an experiment on the machine that serves what the axis of Figure 3 says."""
    return OtherSetting(
        f"{experiment}-slow-processor",
        "the processor",
        "as assumed",
        "with a processor 28 times as slow (13,200 tuples/s in Figure 3)",
    )


def _own_bandwidth(experiment: str) -> OtherSetting:
    return OtherSetting(
        f"{experiment}-connections",
        "whether two connections share the disk's bandwidth",
        "if they do",
        "if each has a bandwidth of its own",
    )


_SMALLER_MEMORY = OtherSetting("op-6c-50MB", "the memory", "at 100 MB", "at 50 MB")


@claim(
    94,
    "op-4a",
    "P-CACHEJOIN serves more than CACHEJOIN at every size of R.",
    "ahead at every size of R",
    ranks="both",
)
def parallel_is_ahead_over_rows(evidence: Evidence) -> Finding:
    return in_other_settings(evidence, "op-4a", _parallel_is_ahead, slow_processor("op-6a"))


@claim(
    95,
    "op-4a",
    "P-CACHEJOIN is ahead of CACHEJOIN by a larger factor where R is small.",
    "a larger factor at the smallest R than at the largest",
    ranks="both",
)
def factor_is_larger_for_small_tables(evidence: Evidence) -> Finding:
    return in_other_settings(evidence, "op-4a", _factor_is_larger, slow_processor("op-6a"))


def _factor_is_larger(evidence: Evidence, experiment: str) -> Finding:
    factors = evidence.curve(experiment, _P) / evidence.curve(experiment, _C)
    holds = bool(factors[0] > factors[-1])
    computing = [_computing_share(evidence, experiment, _C, x) for x in evidence.xs(experiment)]
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
    return in_other_settings(evidence, "op-4b", _parallel_is_ahead, slow_processor("op-6b"))


@claim(
    97,
    "op-4c",
    "P-CACHEJOIN serves more than CACHEJOIN at every skew.",
    "ahead at every exponent",
    ranks="both",
)
def parallel_is_ahead_over_skew(evidence: Evidence) -> Finding:
    return in_other_settings(evidence, "op-4c", _parallel_is_ahead, slow_processor("op-6c"), _SMALLER_MEMORY)


@claim(
    98,
    "op-6a",
    "OP-CACHEJOIN serves more than P-CACHEJOIN and CACHEJOIN at every size of R.",
    "ahead of both at every size of R",
    ranks="both",
)
def optimised_is_best_over_rows(evidence: Evidence) -> Finding:
    return in_other_settings(evidence, "op-6a", _optimised_is_ahead, _own_bandwidth("op-6a"), slow_processor("op-6a"))


@claim(
    99,
    "op-6b",
    "OP-CACHEJOIN serves more than P-CACHEJOIN and CACHEJOIN at every memory size, by a wide margin.",
    "at least 1.25 times the better of the two at every memory size",
    ranks="both",
)
def optimised_is_far_ahead_over_memory(evidence: Evidence) -> Finding:
    return in_other_settings(evidence, "op-6b", _far_ahead, _own_bandwidth("op-6b"), slow_processor("op-6b"))


def _far_ahead(evidence: Evidence, experiment: str) -> Finding:
    ahead = lead(evidence, experiment, _OP, by=_WIDE)
    measured = f"{ahead.min_ratio:.2f} to {ahead.max_ratio:.2f} times the best rival"
    where = place(evidence, experiment, ahead.place)
    if ahead.is_ahead is None:
        return Finding(None, measured, undecided(where, ahead.noise, f"{_WIDE:g} times the best rival"))
    return Finding(ahead.is_ahead, measured, "" if ahead.is_ahead else f"Least at {where}: {_why_not_twice(evidence)}")


@claim(
    100,
    "op-6c",
    "OP-CACHEJOIN serves more than P-CACHEJOIN and CACHEJOIN at every skew.",
    "ahead of both at every exponent",
    ranks="both",
)
def optimised_is_best_over_skew(evidence: Evidence) -> Finding:
    return in_other_settings(
        evidence, "op-6c", _optimised_is_ahead, _own_bandwidth("op-6c"), slow_processor("op-6c"), _SMALLER_MEMORY
    )


@claim(
    101,
    "op-6b",
    "The reading of OP-CACHEJOIN costs almost half of P-CACHEJOIN's in an iteration.",
    "at most 0.6 times as many seconds of reading an iteration",
    ranks="both",
)
def reading_costs_almost_half(evidence: Evidence) -> Finding:
    return in_other_settings(evidence, "op-6b", _reading_is_half, _own_bandwidth("op-6b"))


def _reading_is_half(evidence: Evidence, experiment: str) -> Finding:
    x = evidence.xs(experiment)[0]
    ratio = _reading_seconds(evidence, experiment, _OP, x) / _reading_seconds(evidence, experiment, _P, x)
    holds = ratio <= _ALMOST_HALF
    return Finding(holds, f"{ratio:.2f} times", "" if holds else _why_not_twice(evidence))


@claim(
    102,
    "op-6b",
    "OP-CACHEJOIN gets almost twice the master data for an equal cost of reading.",
    "at least 1.7 times the bytes in a second of reading",
    ranks="both",
)
def almost_twice_the_data(evidence: Evidence) -> Finding:
    return in_other_settings(evidence, "op-6b", _data_is_twice, _own_bandwidth("op-6b"))


def _data_is_twice(evidence: Evidence, experiment: str) -> Finding:
    x = evidence.xs(experiment)[0]
    sizes = [
        evidence.value(experiment, series, x, "bytes_read") / evidence.value(experiment, series, x, "iterations")
        for series in (_OP, _P)
    ]
    seconds = [_reading_seconds(evidence, experiment, series, x) for series in (_OP, _P)]
    ratio = sizes[0] / sizes[1] * seconds[1] / seconds[0]
    holds = ratio >= _ALMOST_TWICE
    return Finding(holds, f"{ratio:.2f} times", "" if holds else _why_not_twice(evidence))


@claim(
    106,
    "op-4b",
    "Reading is the major cost of P-CACHEJOIN.",
    "at every memory size reading costs more than any other kind of operation",
    ranks="both",
)
def reading_is_the_major_cost(evidence: Evidence) -> Finding:
    return in_other_settings(evidence, "op-4b", _reading_costs_most, slow_processor("op-6b"))


def _reading_costs_most(evidence: Evidence, experiment: str) -> Finding:
    shares, rivals = [], []
    for x in evidence.xs(experiment):
        spent = _spent(evidence, experiment, x)
        reading = sum(spent.pop(name) for name in ("seeks", "continuations", "bytes_read"))
        rivals.append(max(spent.values()) / reading)
        shares.append(reading / (reading + sum(spent.values())))
    holds = max(rivals) < 1
    measured = (
        f"{listed(shares, '{:.0%}')} of all charges along memory; the next kind at most {max(rivals):.2f} times it"
    )
    reason = "A read answers so many tuples that putting them out costs more."
    return Finding(holds, measured, "" if holds else reason)


def _parallel_is_ahead(evidence: Evidence, experiment: str) -> Finding:
    return _ahead(evidence, experiment, _P, (_C,))


def _optimised_is_ahead(evidence: Evidence, experiment: str) -> Finding:
    return _ahead(evidence, experiment, _OP, (_C, _P))


def _ahead(evidence: Evidence, experiment: str, winner: str, rivals: tuple[str, ...]) -> Finding:
    """Judge that one series is ahead everywhere, and say what its buffers cost where it is not."""
    finding, ahead = best_everywhere(evidence, experiment, winner, rivals), lead(evidence, experiment, winner, rivals)
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


def _costs(evidence: Evidence, experiment: str) -> CostProfile:
    return costs_of(evidence, str(evidence.plans[experiment].fixed.get("profile", "papers")))


def _reading_seconds(evidence: Evidence, experiment: str, series: str, x: float) -> float:
    """Return the seconds of reading in an iteration."""
    done = _per_iteration(evidence, experiment, series, x)
    reading = Operations(seeks=done.seeks, continuations=done.continuations, bytes_read=done.bytes_read)
    return costs_of(evidence).seconds(reading)


def _computing_share(evidence: Evidence, experiment: str, series: str, x: float) -> float:
    done, costs = _per_iteration(evidence, experiment, series, x), _costs(evidence, experiment)
    reading = Operations(seeks=done.seeks, continuations=done.continuations, bytes_read=done.bytes_read)
    return 1 - costs.seconds(reading) / costs.seconds(done)


def _spent(evidence: Evidence, experiment: str, x: float) -> dict[str, float]:
    """Return what each kind of operation of P-CACHEJOIN costs in an iteration."""
    done, costs = _per_iteration(evidence, experiment, _P, x), _costs(evidence, experiment)
    return {name: costs.seconds(Operations(**{name: getattr(done, name)})) for name in OPERATION_COLUMNS}


def _why_not_twice(evidence: Evidence) -> str:
    x = evidence.xs("op-6b")[0]
    done, costs = _per_iteration(evidence, "op-6b", _P, x), costs_of(evidence)
    seek, transfer = done.seeks * costs.seek_seconds, done.bytes_read / costs.bytes_per_second
    return (
        f"Both loaders read from one disk: the latency of two requests overlaps ({seek * 1e3:.1f} ms of a read), the "
        f"transfer ({transfer * 1e3:.1f} ms) does not get faster."
    )
