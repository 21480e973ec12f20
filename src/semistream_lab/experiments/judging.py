"""Judges the papers' claims by what was measured: as assumed, in the other order of ranks, with other constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from semistream_lab.experiments.evidence import Evidence, NotMeasuredError
from semistream_lab.experiments.point import Scalar
from semistream_lab.experiments.variants import DISCRETE_KEYS, FROM_THE_KEY_ON, MACHINES, Variant

HOLDS, FAILS, DEPENDS, UNJUDGED = "holds", "fails", "depends", "unjudged"
VERDICTS = (HOLDS, FAILS, DEPENDS, UNJUDGED)

CASES = ("sorted", "shuffled", "from_the_key_on", "discrete_keys")
"""What a claim is judged for beside the order of ranks of its paper, as the columns of a verdict name it."""
CALIBRATED, ACCOUNTED = "calibrated", "accounted"
"""What a claim is if it could not have failed: the cost profile was made from it, or the accounting of memory is."""
_WHY_NOT_COUNTED = {
    CALIBRATED: "The cost profile was calibrated on this fact, so it counts for neither side.",
    ACCOUNTED: "True by the formula by which the papers account for memory, which the lab takes over.",
}


@dataclass(frozen=True)
class Finding:
    """What the measurements say about a claim; `holds` is None where it cannot be judged."""

    holds: bool | None
    measured: str
    """The numbers, in a few words."""
    reason: str = ""
    """Why it does not hold or cannot be judged, or what to know although it holds."""
    depends_on: str = ""
    """The setting that the paper does not print and by which it is decided, with the values for which it holds."""

    @property
    def verdict(self) -> str:
        """The finding in one word."""
        if self.holds is None:
            return UNJUDGED
        return DEPENDS if self.depends_on else HOLDS if self.holds else FAILS


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper that measurements can judge."""

    number: int
    experiment: str
    text: str
    expected: str
    judge: Callable[[Evidence], Finding]
    ranks: str
    """The order of ranks that the paper used: `sorted`, `shuffled`, or `both` where it does not say."""
    ranked: bool
    """Whether the order of ranks matters."""
    priced: bool
    """Whether the cost constants matter."""
    standing: str = ""
    """`calibrated` or `accounted` if it could not have failed."""


CLAIMS: dict[int, Claim] = {}


def claim(
    number: int,
    experiment: str,
    text: str,
    expected: str,
    *,
    ranks: str = "sorted",
    ranked: bool = True,
    priced: bool = True,
    standing: str = "",
) -> Callable[[Callable[[Evidence], Finding]], Callable[[Evidence], Finding]]:
    """Register the function that judges a claim."""

    def register(judge: Callable[[Evidence], Finding]) -> Callable[[Evidence], Finding]:
        if number in CLAIMS:
            raise ValueError(f"claim {number} is judged twice")
        CLAIMS[number] = Claim(number, experiment, text, expected, judge, ranks, ranked, priced, standing)
        return judge

    return register


def judge(one: Claim, evidence: Evidence) -> Mapping[str, Scalar]:
    """Return the verdict on a claim as a flat object.

    A claim *depends* if a setting that its paper does not print decides it: one that its judge names, the order of
    ranks where the paper does not say, where a read begins, or a constant of the machine. The law of the keys is
    printed, so the verdict with another one is only told.
    """
    orders = {order: _find(one, replace(evidence, ranks=order)) for order in ("sorted", "shuffled")}
    if not one.ranked:
        finding = orders["sorted"]
    elif one.ranks == "both":
        finding = _both(orders)
    else:
        finding = orders[one.ranks]
    flips, unknown = _flips(one, evidence, finding) if one.priced and finding.holds is not None else ([], [])
    other_read, other_law = (_in_variant(one, evidence, variant) for variant in (FROM_THE_KEY_ON, DISCRETE_KEYS))
    finding = with_settings(finding, orders if one.ranked and one.ranks == "both" else {}, flips, other_read)
    finding = with_standing(finding, one.standing)
    return {
        "number": one.number,
        "experiment": one.experiment,
        "claim": one.text,
        "expected": one.expected,
        "measured": finding.measured,
        "verdict": finding.verdict,
        "reason": finding.reason,
        "depends_on": finding.depends_on,
        "standing": one.standing,
        "ranks": one.ranks if one.ranked else "any",
        "verdict_sorted": orders["sorted"].verdict,
        "measured_sorted": orders["sorted"].measured,
        "verdict_shuffled": orders["shuffled"].verdict if one.ranked else orders["sorted"].verdict,
        "measured_shuffled": orders["shuffled"].measured if one.ranked else orders["sorted"].measured,
        "verdict_from_the_key_on": other_read.verdict,
        "measured_from_the_key_on": other_read.measured,
        "verdict_discrete_keys": other_law.verdict,
        "measured_discrete_keys": other_law.measured,
        "depends_on_costs": one.priced,
        "flips_with": ", ".join(flips),
        "not_judged_with": ", ".join(unknown),
    }


def with_settings(
    finding: Finding, orders: Mapping[str, Finding], flips: Sequence[str], other_read: Finding | None = None
) -> Finding:
    """Return a finding that names all settings by which it is decided."""
    if finding.holds is None:
        return finding
    settings = [finding.depends_on] if finding.depends_on else []
    if len({one.holds for one in orders.values()}) > 1:
        settings.append("the order of R: " + ", ".join(f"{order} {one.verdict}" for order, one in orders.items()))
    if other_read is not None and other_read.holds not in (None, finding.holds):
        aligned, from_key = (HOLDS, FAILS) if finding.holds else (FAILS, HOLDS)
        settings.append(f"where a read begins: {aligned} with aligned partitions, {from_key} from the key on")
    if flips:
        as_assumed, otherwise = (HOLDS, FAILS) if finding.holds else (FAILS, HOLDS)
        settings.append(f"the machine: {as_assumed} as assumed, {otherwise} with {', '.join(flips)}")
    return replace(finding, depends_on="; ".join(settings))


def with_standing(finding: Finding, standing: str) -> Finding:
    """Return a finding that says so if the claim could not have failed; what was calibrated on is not judged."""
    if not standing or finding.holds is None:
        return finding
    reason = f"{_WHY_NOT_COUNTED[standing]} {finding.reason}".strip()
    if standing == CALIBRATED:
        return replace(finding, holds=None, reason=reason, depends_on="")
    return replace(finding, reason=reason)


def _find(one: Claim, evidence: Evidence) -> Finding:
    try:
        return one.judge(evidence)
    except NotMeasuredError as missing:
        return Finding(None, "", f"Not measured: {missing}.")
    except (ArithmeticError, LookupError, ValueError) as error:
        return Finding(None, "", f"The results cannot be judged ({type(error).__name__}: {error}).")


def _both(orders: Mapping[str, Finding]) -> Finding:
    """Return the finding where the paper does not say how its table was ordered: it must hold in both orders."""
    measured = "; ".join(f"{order}: {finding.measured}" for order, finding in orders.items() if finding.measured)
    reasons = dict.fromkeys(finding.reason for finding in orders.values() if finding.reason)
    verdicts = [finding.holds for finding in orders.values()]
    holds = None if None in verdicts else all(verdicts)
    settings = dict.fromkeys(finding.depends_on for finding in orders.values() if finding.depends_on)
    return Finding(holds, measured, " ".join(reasons), "; ".join(settings))


def _flips(one: Claim, evidence: Evidence, nominal: Finding) -> tuple[list[str], list[str]]:
    """Return the variants of the constants in which the verdict is another, and those in which there is none."""
    flips, unknown = [], []
    for variant in MACHINES:
        finding = _in_variant(one, evidence, variant)
        if finding.holds is None:
            unknown.append(variant.name)
        elif finding.holds != nominal.holds:
            flips.append(variant.name)
    return flips, unknown


def _in_variant(one: Claim, evidence: Evidence, variant: Variant) -> Finding:
    """Return the finding with another machine or setting, in the order of ranks that the paper used, or in both."""
    orders = ("sorted", "shuffled") if one.ranked and one.ranks == "both" else (one.ranks if one.ranked else "sorted",)
    findings = {order: _find(one, replace(evidence, ranks=order, variant=variant)) for order in orders}
    return _both(findings) if len(findings) > 1 else next(iter(findings.values()))
