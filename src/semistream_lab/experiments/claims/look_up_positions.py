"""Claims of the paper on the priority queue of frequent pages about look-ups at a fixed position of the queue."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Float64Array
from semistream_lab.experiments.claims.comparing import (
    ahead_of_all,
    noise_between,
    per_read,
    place,
    reading_seconds_per_tuple,
)
from semistream_lab.experiments.claims.readings import LARGE_READS, LATE_POSITION, MACHINE, Reading, by_readings
from semistream_lab.experiments.claims.tolerances import TIE
from semistream_lab.experiments.evidence import Evidence
from semistream_lab.experiments.judging import Finding, claim

FAMILIES = ("HYBRIDJOIN", "CACHEJOIN")
_POSITION_STEP = 0.1
"""The grid of positions has steps of a tenth, so a position is known to a tenth."""


@claim(
    71,
    "pq-2",
    "The best look-up position moves to the young end as the skew grows.",
    "the best position never moves to the old end from one exponent to the next, and moves by two tenths in all",
    ranks="shuffled",
)
def best_position_moves_to_the_young_end(evidence: Evidence) -> Finding:
    return by_readings(evidence, "pq-2", _moves_to_the_young_end, [LARGE_READS])


def _moves_to_the_young_end(evidence: Evidence, experiment: str, _: Reading) -> Finding:
    tops = np.array([_best_position(evidence, experiment, series) for series in evidence.series(experiment)])
    holds = bool((np.diff(tops) <= 1e-9).all() and tops[0] - tops[-1] >= 2 * _POSITION_STEP - 1e-9)
    return Finding(holds, _positions(evidence, experiment), "" if holds else _why_old(evidence, experiment))


@claim(
    72,
    "pq-2",
    "At exponent 1 the best look-up position is at 30% of the queue from the young end.",
    "20% to 40%, or 30% within 2% of the best rate",
    ranks="shuffled",
)
def best_position_is_30_percent(evidence: Evidence) -> Finding:
    return by_readings(evidence, "pq-2", _is_30_percent, [LARGE_READS])


def _is_30_percent(evidence: Evidence, experiment: str, _: Reading) -> Finding:
    curve, xs = evidence.curve(experiment, "e = 1.0"), evidence.xs(experiment)
    top, loss = xs[int(curve.argmax())], float(1 - curve[xs.index(0.3)] / curve.max())
    holds = abs(top - 0.3) <= _POSITION_STEP + 1e-9 or loss <= TIE
    reason = "" if holds else _why_old(evidence, experiment)
    return Finding(holds, f"best at {top:.0%}; 30% serves {loss:.1%} less", reason)


@claim(
    73,
    "pq-2",
    "At exponent 0.25 the best look-up position is near the old end.",
    "at 80% of the queue from the young end or beyond",
    ranks="shuffled",
)
def best_position_is_old_at_weak_skew(evidence: Evidence) -> Finding:
    return by_readings(evidence, "pq-2", _is_old_at_weak_skew, [LARGE_READS])


def _is_old_at_weak_skew(evidence: Evidence, experiment: str, _: Reading) -> Finding:
    top = _best_position(evidence, experiment, "e = 0.25")
    return Finding(top >= 0.8 - 1e-9, f"best at {top:.0%}")


@claim(
    74,
    "pq-3a",
    "Looking up at a fixed position serves more than looking up the oldest tuple.",
    "at exponent 1 HYBRIDJOIN-L above HYBRIDJOIN and CACHEJOIN-L above CACHEJOIN at every memory size",
    ranks="shuffled",
)
def fixed_position_is_above_the_oldest(evidence: Evidence) -> Finding:
    return by_readings(evidence, "pq-3a", _above_the_oldest, [LATE_POSITION, LARGE_READS])


def _above_the_oldest(evidence: Evidence, experiment: str, reading: Reading) -> Finding:
    pairs = {family: (early(family, reading), family) for family in FAMILIES}
    holds = ahead_everywhere(evidence, experiment, list(pairs.values()))
    measured = factors(evidence, experiment, pairs, "-L")
    return Finding(holds, measured, "" if holds else why_not_ahead(evidence, experiment, pairs, holds))


@claim(
    75,
    "pq-3a",
    "CACHEJOIN-L serves more than CACHEJOIN and more than HYBRIDJOIN-L.",
    "above both at every memory size",
    ranks="shuffled",
)
def cachejoin_l_is_above_both(evidence: Evidence) -> Finding:
    return by_readings(evidence, "pq-3a", _above_both, [LATE_POSITION, LARGE_READS])


def _above_both(evidence: Evidence, experiment: str, reading: Reading) -> Finding:
    cached, uncached = (early(family, reading) for family in ("CACHEJOIN", "HYBRIDJOIN"))
    rivals = {"CACHEJOIN": (cached, "CACHEJOIN"), "HYBRIDJOIN-L": (cached, uncached)}
    holds = ahead_everywhere(evidence, experiment, list(rivals.values()))
    parts = []
    for rival, (winner, loser) in rivals.items():
        gain = ratios(evidence, experiment, winner, loser)
        parts.append(f"{gain.min():.2f} to {gain.max():.2f} times {rival}")
    return Finding(holds, ", ".join(parts), "" if holds else why_not_ahead(evidence, experiment, rivals, holds))


@claim(
    82,
    "pq-2-rows",
    "The best look-up position changes with the size of R.",
    "another position is best at the largest R than at the smallest, and keeping it costs more than 2% at the other",
    ranks="shuffled",
)
def best_position_changes_with_rows(evidence: Evidence) -> Finding:
    return by_readings(evidence, "pq-2-rows", _changes_with_rows, [LARGE_READS])


def _changes_with_rows(evidence: Evidence, experiment: str, _: Reading) -> Finding:
    series = evidence.series(experiment)
    curves = [evidence.curve(experiment, one) for one in (series[0], series[-1])]
    first, last = (int(curve.argmax()) for curve in curves)
    loss = max(float(1 - curves[0][last] / curves[0][first]), float(1 - curves[1][first] / curves[1][last]))
    holds = first != last and loss > TIE
    measured = f"{_positions(evidence, experiment)}; the wrong one costs {loss:.1%}"
    return Finding(holds, measured, "" if holds else "The rates around the best position are flat.")


def early(family: str, reading: Reading) -> str:
    """Return the series that looks up at the fixed position."""
    return f"{family}-L at {reading.position}"


def ratios(evidence: Evidence, experiment: str, winner: str, rival: str) -> Float64Array:
    """Return how many times as much one series serves as another, along the x axis."""
    return evidence.curve(experiment, winner) / evidence.curve(experiment, rival)


def ahead_everywhere(evidence: Evidence, experiment: str, pairs: list[tuple[str, str]]) -> bool | None:
    """Say whether the first of each pair is ahead of the second at every place by more than noise."""
    gains, noises = [], []
    for winner, rival in pairs:
        gains += ratios(evidence, experiment, winner, rival).tolist()
        noises += [noise_between(evidence, experiment, winner, rival, x) for x in evidence.xs(experiment)]
    return ahead_of_all(gains, noises)


def factors(evidence: Evidence, experiment: str, pairs: dict[str, tuple[str, str]], suffix: str) -> str:
    """Return in words by which factors the first of each pair is ahead of the second."""
    gains = {family: ratios(evidence, experiment, *pair) for family, pair in pairs.items()}
    return ", ".join(f"{family}{suffix} {gain.min():.2f} to {gain.max():.2f} times" for family, gain in gains.items())


def why_not_ahead(
    evidence: Evidence, experiment: str, pairs: dict[str, tuple[str, str]], holds: bool | None = False
) -> str:
    """Say what reads bring where the first of a pair is least ahead of the second."""
    winner, rival = min(pairs.values(), key=lambda pair: float(ratios(evidence, experiment, *pair).min()))
    x = evidence.xs(experiment)[int(ratios(evidence, experiment, winner, rival).argmin())]
    parts = []
    for series in (winner, rival):
        tuples, _ = per_read(evidence, experiment, series, x)
        hits = evidence.value(experiment, series, x, "cache_hits") / evidence.value(experiment, series, x, "tuples")
        reading = reading_seconds_per_tuple(evidence, experiment, series, x, MACHINE) * 1e6
        cached = f", {hits:.0%} of them from the cache" if series.startswith("CACHEJOIN") else ""
        parts.append(f"{series} answers {tuples:.0f} tuples a read{cached} ({reading:.0f} µs of reading a tuple)")
    reason = f"At {place(evidence, experiment, x)} " + ", ".join(parts) + "."
    if holds is None:
        return f"Undecided: somewhere the two differ by less than their 95% intervals. {reason}"
    return reason


def _best_position(evidence: Evidence, experiment: str, series: str) -> float:
    return evidence.xs(experiment)[int(evidence.curve(experiment, series).argmax())]


def _positions(evidence: Evidence, experiment: str) -> str:
    parts = [f"{_best_position(evidence, experiment, one):.0%} at {one}" for one in evidence.series(experiment)]
    return "best at " + ", ".join(parts)


def _why_old(evidence: Evidence, experiment: str) -> str:
    """Say what the reads of some positions bring at exponent 1."""
    parts = [
        f"{per_read(evidence, experiment, 'e = 1.0', position)[0]:.0f} tuples at {position:.0%}"
        for position in (0.3, 0.9, 1.0)
    ]
    return f"At exponent 1 a read answers {', '.join(parts)} of the queue."
