"""What judges ask of curves: who is ahead and by how much, what rises or falls, and what a read costs and brings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import hypot, sqrt

import numpy as np

from semistream.core.arrays import Float64Array
from semistream.core.costs import CostProfile, profile_named
from semistream_lab.experiments.confidence import confidence_of
from semistream_lab.experiments.evidence import Evidence, NotMeasuredError
from semistream_lab.experiments.judging import Finding
from semistream_lab.experiments.plan import PlannedPoint
from semistream_lab.experiments.point import varied
from semistream_lab.experiments.variants import AS_ASSUMED

_WORDS: dict[str, Callable[[float], str]] = {
    "memory": lambda x: f"{x / 1e6:g} MB",
    "master_rows": lambda x: f"{x / 1e6:g}M rows",
    "exponent": lambda x: f"exponent {x:g}",
    "arrival_rate": lambda x: f"{x:g} tuples/s",
    "parameter.read_bytes": lambda x: f"{x / 1e3:.0f} kB",
    "parameter.pinned_share": lambda x: f"{x:.2%} of memory",
}


@dataclass(frozen=True)
class Lead:
    """How far one series is ahead of its best rival where it is least so."""

    min_ratio: float
    max_ratio: float
    rival: str
    place: float
    is_ahead: bool | None
    """Whether it is ahead everywhere; None if that is undecided, because a lead is within the noise."""
    noise: float
    """By how much the two may differ by chance where it is least ahead, as a share."""


def ahead_of_all(ratios: Sequence[float], noises: Sequence[float]) -> bool | None:
    """Say whether all ratios are above 1 by more than their noise; None if none is below, but some are within it."""
    pairs = list(zip(ratios, noises, strict=True))
    if any(ratio < 1 - noise for ratio, noise in pairs):
        return False
    return True if all(ratio > 1 + noise for ratio, noise in pairs) else None


def noise_between(evidence: Evidence, experiment: str, one: str, other: str, x: float) -> float:
    """Return by how much the rates of two series may differ by chance, as a share: their 95% intervals together.

    Nothing where no interval was measured.
    """
    return hypot(*(_noise(evidence, experiment, series, x) for series in (one, other)))


def _noise(evidence: Evidence, experiment: str, series: str, x: float) -> float:
    """Return half of the 95% interval of a rate, as a share of it.

    Of a single run with other constants it is that of a single run as assumed, if there are repetitions of that.
    """
    rows = evidence.rows(experiment, series, x)
    as_assumed = replace(evidence, variant=AS_ASSUMED)
    repetitions = as_assumed.rows(experiment, series, x) if len(rows) == 1 and evidence.variant != AS_ASSUMED else []
    if len(repetitions) > 1:
        sure = (confidence_of(repetitions, "service_rate") or 0.0) * sqrt(len(repetitions))
        return sure / as_assumed.value(experiment, series, x, "service_rate")
    return (confidence_of(rows, "service_rate") or 0.0) / evidence.value(experiment, series, x, "service_rate")


def undecided(where: str, noise: float, than: str = "") -> str:
    """Say why a lead is no lead, or why it is not known to be larger than so much."""
    differ = f"the lead differs from {than}" if than else "the two differ"
    return f"Undecided: at {where} {differ} by less than their 95% intervals (±{noise:.1%} together)."


def place(evidence: Evidence, experiment: str, x: float) -> str:
    """Return a place of the x axis in words."""
    words = _WORDS.get(evidence.plans[experiment].x.name)
    return words(x) if words else f"{x:g}"


def lead(
    evidence: Evidence,
    experiment: str,
    winner: str,
    rivals: Sequence[str] = (),
    where: Sequence[float] = (),
    *,
    by: float = 1.0,
) -> Lead:
    """Return how far the winner is ahead of the best of its rivals (all others), at the places named (all).

    It is ahead if it is above `by` times the rival.
    """
    rivals = rivals or [series for series in evidence.series(experiment) if series != winner]
    ratios = []
    for x in where or evidence.xs(experiment):
        best = max(rivals, key=lambda rival: evidence.value(experiment, rival, x))
        ratio = evidence.value(experiment, winner, x) / evidence.value(experiment, best, x)
        ratios.append((ratio, best, x, noise_between(evidence, experiment, winner, best, x)))
    min_ratio, rival, worst, noise = min(ratios)
    is_ahead = ahead_of_all([one[0] / by for one in ratios], [one[3] for one in ratios])
    return Lead(min_ratio, max(ratios)[0], rival, worst, is_ahead, noise)


def best_everywhere(
    evidence: Evidence, experiment: str, winner: str, rivals: Sequence[str] = (), where: Sequence[float] = ()
) -> Finding:
    """Judge that one series is ahead of all others at every place."""
    ahead = lead(evidence, experiment, winner, rivals, where)
    measured = f"{ahead.min_ratio:.2f} to {ahead.max_ratio:.2f} times the best rival"
    where_least = place(evidence, experiment, ahead.place)
    reason = f"At {where_least} {explained(evidence, experiment, winner, ahead.rival, ahead.place)}."
    return ahead_or_not(ahead, f"{measured}, least at {where_least}", where_least, reason)


def ahead_or_not(ahead: Lead, measured: str, where: str, reason: str) -> Finding:
    """Return the finding that a series is ahead, where it is least so; undecided within the noise."""
    if ahead.is_ahead is None:
        return Finding(None, measured, undecided(where, ahead.noise))
    return decided(ahead.is_ahead, measured, reason)


def decided(holds: bool, measured: str, reason: str, depends_on: str = "") -> Finding:
    """Return a finding that gives its reason only if the claim fails."""
    return Finding(bool(holds), measured, "" if holds else reason, depends_on)


def explained(evidence: Evidence, experiment: str, one: str, other: str, x: float) -> str:
    """Say what the reads of two series bring and cost, which is why one is faster."""
    parts = []
    for series in (one, other):
        tuples, seconds = per_read(evidence, experiment, series, x)
        parts.append(f"{series} answers {tuples:.0f} tuples in {seconds * 1e3:.1f} ms a read")
    return " and ".join(parts)


def per_read(evidence: Evidence, experiment: str, series: str, x: float) -> tuple[float, float]:
    """Return the tuples that leave per iteration, and the seconds of an iteration."""
    iterations = evidence.value(experiment, series, x, "iterations")
    tuples = evidence.value(experiment, series, x, "tuples")
    return tuples / iterations, evidence.value(experiment, series, x, "seconds") / iterations


def reading_seconds_per_tuple(
    evidence: Evidence, experiment: str, series: str, x: float, profile: str = "papers"
) -> float:
    """Return the seconds of reading for each tuple that leaves."""
    costs = costs_of(evidence, profile)
    seeks, continuations, size_bytes = (
        evidence.value(experiment, series, x, f"operations_{name}") for name in ("seeks", "continuations", "bytes_read")
    )
    seconds = seeks * costs.seek_seconds + continuations * costs.request_seconds + size_bytes / costs.bytes_per_second
    return seconds / evidence.value(experiment, series, x, "tuples")


def costs_of(evidence: Evidence, profile: str = "papers") -> CostProfile:
    """Return what operations cost in the variant that is judged."""
    return varied(profile_named(profile), evidence.variant.factors)


def slope(x: Sequence[float] | Float64Array, y: Sequence[float] | Float64Array) -> float:
    """Return the exponent of the power law that fits best."""
    return float(np.polyfit(np.log(np.asarray(x)), np.log(np.asarray(y)), 1)[0])


def rises(values: Sequence[float] | Float64Array, tolerance: float = 0.0) -> bool:
    """Say whether no value is below the one before, by more than a share of it."""
    before, after = np.asarray(values)[:-1], np.asarray(values)[1:]
    return bool((after >= before * (1 - tolerance)).all())


def has_one_maximum(values: Sequence[float] | Float64Array, tolerance: float = 0.0) -> bool:
    """Say whether values rise to a maximum inside and fall from there on, but for a share of each as noise."""
    values = np.asarray(values)
    top = int(values.argmax())
    inside = 0 < top < len(values) - 1
    return inside and rises(values[: top + 1], tolerance) and rises(values[top:][::-1], tolerance)


def listed(values: Sequence[float] | Float64Array, pattern: str = "{:.2f}") -> str:
    """Return numbers in a row."""
    return ", ".join(pattern.format(value) for value in values)


def planned(evidence: Evidence, experiment: str, series: str, x: float) -> PlannedPoint:
    """Return the run at one place of an experiment, as its plan has it."""
    plan = evidence.plans[experiment]
    ranks = evidence.ranks if evidence.ranks in plan.ranks else plan.ranks[0]
    for one in plan.points(scale=evidence.scale, clock=evidence.clock, variants=False):
        if one.series == series and one.x == x and one.point.ranks == ranks:
            return one
    raise NotMeasuredError(f"{experiment} has no {series!r} at {x:g}")


def deviations(evidence: Evidence, experiment: str, series: str, column: str) -> Float64Array:
    """Return by how much the prediction of a cost model is above the measured rate, as a share of it, along a curve."""
    deviating = []
    for x in evidence.xs(experiment):
        expected = [row.get(column) for row in evidence.rows(experiment, series, x)]
        measured = evidence.value(experiment, series, x)
        deviating.append(float("nan") if None in expected else float(np.mean(expected)) / measured - 1)  # type: ignore[arg-type]
    return np.array(deviating)
