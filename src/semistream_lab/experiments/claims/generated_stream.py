"""Claims of the HYBRIDJOIN and X-HYBRIDJOIN papers about the generated stream: skew, and bursts."""

from __future__ import annotations

import numpy as np

from semistream_lab.experiments.claims.comparing import decided
from semistream_lab.experiments.evidence import Evidence, NotMeasuredError
from semistream_lab.experiments.judging import Finding, claim

_EXPONENT_1 = "exponent 1"
_PRINTED = "exponent 1, the paper's generator"


@claim(
    29,
    "hybrid-10a",
    "A fifth of the products makes about 80% of the sales at an exponent of 1.",
    "75% to 85% of the sales, drawn by Zipf's law or by the paper's generator",
    ranked=False,
    priced=False,
)
def a_fifth_sells_four_fifths(evidence: Evidence) -> Finding:
    law, printed = (evidence.value("hybrid-10a", series, 0.2) for series in (_EXPONENT_1, _PRINTED))
    holds = any(0.75 <= share <= 0.85 for share in (law, printed))
    reason = (
        "At an exponent of 1 a fifth of N products makes 1 - ln 5 / (ln N + 0.58) of the sales: 80% only for some "
        "1,800 products, and more for every table of the papers. Here the rule needs an exponent of "
        f"{_exponent_of_the_rule(evidence):.2f}."
    )
    measured = f"{law:.1%} of the sales by Zipf's law, {printed:.1%} by the paper's generator"
    return decided(holds, measured, reason)


@claim(
    30,
    "hybrid-10b",
    "On log-log axes frequencies lie on a straight line.",
    "a line fits the logarithms with R² of at least 0.99 and a slope within 0.05 of -1",
    ranked=False,
    priced=False,
)
def frequencies_lie_on_a_line(evidence: Evidence) -> Finding:
    fits = {series: _line(evidence, series) for series in (_EXPONENT_1, _PRINTED)}
    holds = all(abs(slope + 1) <= 0.05 and fit >= 0.99 for slope, fit in fits.values())
    parts = [f"slope {slope:.3f}, R² {fit:.4f} ({series})" for series, (slope, fit) in fits.items()]
    return Finding(holds, "; ".join(parts))


def _line(evidence: Evidence, series: str) -> tuple[float, float]:
    """Return the slope of the line through the logarithms, and the share of their variance that it explains."""
    points = []
    for x in evidence.xs("hybrid-10b"):
        try:
            rank = evidence.value("hybrid-10b", series, x, "mean_rank")
            points.append((np.log(rank), np.log(evidence.value("hybrid-10b", series, x))))
        except NotMeasuredError:
            continue  # the table has no such rank
    if len(points) < 3:
        raise NotMeasuredError(f"{series} has not been run")
    ranks, frequencies = np.array(points).T
    slope, start = np.polyfit(ranks, frequencies, 1)
    rest = frequencies - (slope * ranks + start)
    return float(slope), float(1 - rest.var() / frequencies.var())


@claim(
    31,
    "hybrid-11",
    "Arrivals are bursty and self-similar.",
    "variance above 10 times the mean (1 without bursts), Hurst exponent above 0.7 over windows of 1 to 256 steps",
    ranked=False,
    priced=False,
)
def arrivals_are_bursty(evidence: Evidence) -> Finding:
    series = evidence.series("hybrid-11")[0]
    first = evidence.xs("hybrid-11")[0]
    hurst, dispersion = (evidence.value("hybrid-11", series, first, name) for name in ("hurst_exponent", "dispersion"))
    note = "The slowest of the ten sources switches every 512 steps on average: beyond that arrivals are independent."
    return Finding(
        hurst > 0.7 and dispersion > 10, f"Hurst exponent {hurst:.2f}, variance {dispersion:.0f} × mean", note
    )


@claim(
    59,
    "hybrid-10a",
    "The 80/20 rule corresponds to an exponent slightly below 1.",
    "a fifth of the products makes 80% of the sales at an exponent between 0.8 and 1",
    ranked=False,
    priced=False,
)
def the_rule_is_below_exponent_1(evidence: Evidence) -> Finding:
    exponent = _exponent_of_the_rule(evidence)
    return Finding(0.8 < exponent < 1, f"80% at an exponent of about {exponent:.2f} (2 million products)")


def _exponent_of_the_rule(evidence: Evidence) -> float:
    """Return the exponent at which a fifth of the products makes four fifths of the sales; 0 or 2 if out of range."""
    exponents = np.array([0.8, 0.9, 1.0])
    shares = [evidence.value("hybrid-10a", f"exponent {exponent:g}", 0.2) for exponent in exponents]
    return float(np.interp(0.8, shares, exponents, left=0.0, right=2.0))
