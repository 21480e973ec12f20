"""Claims of the paper on the priority queue of frequent pages about look-ups at a fixed position of the queue.

A fixed position is judged by the better of the two that were measured, 30% and 90% of the queue from its young end,
unless the claim is about one position: the paper names 30% for exponent 1 and the old end for weak skew.
"""

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
    tops = np.array([_best_position(evidence, "pq-2", series) for series in evidence.series("pq-2")])
    holds = bool((np.diff(tops) <= 1e-9).all() and tops[0] - tops[-1] >= 2 * _POSITION_STEP - 1e-9)
    return Finding(holds, _positions(evidence, "pq-2"), "" if holds else _why_old(evidence))


@claim(
    72,
    "pq-2",
    "At exponent 1 the best look-up position is at 30% of the queue from the young end.",
    "20% to 40%, or 30% within 2% of the best rate",
    ranks="shuffled",
)
def best_position_is_30_percent(evidence: Evidence) -> Finding:
    curve, xs = evidence.curve("pq-2", "e = 1.0"), evidence.xs("pq-2")
    top, loss = xs[int(curve.argmax())], float(1 - curve[xs.index(0.3)] / curve.max())
    holds = abs(top - 0.3) <= _POSITION_STEP + 1e-9 or loss <= TIE
    return Finding(holds, f"best at {top:.0%}; 30% serves {loss:.1%} less", "" if holds else _why_old(evidence))


@claim(
    73,
    "pq-2",
    "At exponent 0.25 the best look-up position is near the old end.",
    "at 80% of the queue from the young end or beyond",
    ranks="shuffled",
)
def best_position_is_old_at_weak_skew(evidence: Evidence) -> Finding:
    top = _best_position(evidence, "pq-2", "e = 0.25")
    return Finding(top >= 0.8 - 1e-9, f"best at {top:.0%}")


@claim(
    74,
    "pq-3a",
    "Looking up at a fixed position serves more than looking up the oldest tuple.",
    "at exponent 1 HYBRIDJOIN-L above HYBRIDJOIN and CACHEJOIN-L above CACHEJOIN at every memory size",
    ranks="shuffled",
)
def fixed_position_is_above_the_oldest(evidence: Evidence) -> Finding:
    gains = {family: early_rates(evidence, "pq-3a", family) / evidence.curve("pq-3a", family) for family in FAMILIES}
    holds = ahead_of_position(evidence, "pq-3a", "")
    at_30 = ", ".join(
        f"{family} {(evidence.curve('pq-3a', f'{family}-L at 30%') / evidence.curve('pq-3a', family)).min():.2f}"
        for family in FAMILIES
    )
    note = f"At 30% the factors are at least {at_30}."
    return Finding(
        holds, factors(gains), note if holds else f"{note} {why_below(evidence, 'pq-3a', gains, '')}".strip()
    )


@claim(
    75,
    "pq-3a",
    "CACHEJOIN-L serves more than CACHEJOIN and more than HYBRIDJOIN-L.",
    "above both at every memory size",
    ranks="shuffled",
)
def cachejoin_l_is_above_both(evidence: Evidence) -> Finding:
    cached = early_rates(evidence, "pq-3a", "CACHEJOIN")
    base, plain = cached / evidence.curve("pq-3a", "CACHEJOIN"), cached / early_rates(evidence, "pq-3a", "HYBRIDJOIN")
    ratios, noises = [], []
    for x in evidence.xs("pq-3a"):
        early = best_early(evidence, "pq-3a", "CACHEJOIN", x)
        for rival in ("CACHEJOIN", best_early(evidence, "pq-3a", "HYBRIDJOIN", x)):
            ratios.append(evidence.value("pq-3a", early, x) / evidence.value("pq-3a", rival, x))
            noises.append(noise_between(evidence, "pq-3a", early, rival, x))
    holds = ahead_of_all(ratios, noises)
    measured = (
        f"{base.min():.2f} to {base.max():.2f} times CACHEJOIN, {plain.min():.2f} to {plain.max():.2f} HYBRIDJOIN-L"
    )
    return Finding(holds, measured, "" if holds else why_below(evidence, "pq-3a", {"CACHEJOIN": base}, ""))


@claim(
    82,
    "pq-2-rows",
    "The best look-up position changes with the size of R.",
    "another position is best at the largest R than at the smallest, and keeping it costs more than 2% at the other",
    ranks="shuffled",
)
def best_position_changes_with_rows(evidence: Evidence) -> Finding:
    series = evidence.series("pq-2-rows")
    curves = [evidence.curve("pq-2-rows", one) for one in (series[0], series[-1])]
    first, last = (int(curve.argmax()) for curve in curves)
    loss = max(float(1 - curves[0][last] / curves[0][first]), float(1 - curves[1][first] / curves[1][last]))
    holds = first != last and loss > TIE
    measured = f"{_positions(evidence, 'pq-2-rows')}; the wrong one costs {loss:.1%}"
    return Finding(holds, measured, "" if holds else "The rates around the best position are flat.")


def early_rates(evidence: Evidence, experiment: str, family: str) -> Float64Array:
    """Return the rates of the better of the two fixed positions."""
    rates: Float64Array = np.max(
        [evidence.curve(experiment, f"{family}-L at {position}") for position in ("30%", "90%")], axis=0
    )
    return rates


def ahead_of_position(evidence: Evidence, experiment: str, suffix: str, position: str = "") -> bool | None:
    """Say whether both algorithms of a suffix are ahead of the better fixed position (or of one) by more than noise.

    Without a suffix: whether the better fixed position is ahead of the algorithms that look up the oldest.
    """
    ratios, noises = [], []
    for family in FAMILIES:
        for x in evidence.xs(experiment):
            early = f"{family}-L at {position}" if position else best_early(evidence, experiment, family, x)
            ratio = evidence.value(experiment, f"{family}{suffix}", x) / evidence.value(experiment, early, x)
            ratios.append(ratio if suffix else 1 / ratio)
            noises.append(noise_between(evidence, experiment, f"{family}{suffix}", early, x))
    return ahead_of_all(ratios, noises)


def best_early(evidence: Evidence, experiment: str, family: str, x: float) -> str:
    """Return the better of the two fixed positions at a place."""
    return max((f"{family}-L at {p}" for p in ("30%", "90%")), key=lambda one: evidence.value(experiment, one, x))


def factors(gains: dict[str, Float64Array], suffix: str = "-L") -> str:
    parts = [f"{family}{suffix} {gain.min():.2f} to {gain.max():.2f} times" for family, gain in gains.items()]
    return ", ".join(parts)


def why_below(evidence: Evidence, experiment: str, gains: dict[str, Float64Array], suffix: str) -> str:
    """Say what reads bring where the factor is smallest: of the priority queue, or without a suffix of the base."""
    family = min(gains, key=lambda one: float(gains[one].min()))
    x = evidence.xs(experiment)[int(gains[family].argmin())]
    early = best_early(evidence, experiment, family, x)
    parts = []
    for series in (f"{family}{suffix}", early):
        tuples, _ = per_read(evidence, experiment, series, x)
        hits = evidence.value(experiment, series, x, "cache_hits") / evidence.value(experiment, series, x, "tuples")
        reading = reading_seconds_per_tuple(evidence, experiment, series, x) * 1e6
        cached = f", {hits:.0%} of them from the cache" if family == "CACHEJOIN" else ""
        parts.append(f"{series} answers {tuples:.0f} tuples a read{cached} ({reading:.0f} µs of reading a tuple)")
    return f"At {place(evidence, experiment, x)} " + ", ".join(parts) + "."


def _best_position(evidence: Evidence, experiment: str, series: str) -> float:
    return evidence.xs(experiment)[int(evidence.curve(experiment, series).argmax())]


def _positions(evidence: Evidence, experiment: str) -> str:
    parts = [f"{_best_position(evidence, experiment, one):.0%} at {one}" for one in evidence.series(experiment)]
    return "best at " + ", ".join(parts)


def _why_old(evidence: Evidence) -> str:
    """Say what the reads of two positions bring at exponent 1."""
    parts = [
        f"{per_read(evidence, 'pq-2', 'e = 1.0', position)[0]:.0f} tuples at {position:.0%}"
        for position in (0.3, 0.9, 1.0)
    ]
    return f"At exponent 1 a read answers {', '.join(parts)} of the queue."
