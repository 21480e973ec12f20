"""Settings that a paper does not print, each run in another way: a claim that one of them turns round depends on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from semistream_lab.experiments.evidence import Evidence, NotMeasuredError
from semistream_lab.experiments.judging import FAILS, HOLDS, Finding
from semistream_lab.experiments.variants import AS_ASSUMED

Judge = Callable[[Evidence, str], Finding]
"""Judges a claim by an experiment."""


@dataclass(frozen=True)
class OtherSetting:
    """A setting, and the experiment that was run with another value of it."""

    experiment: str
    about: str
    """What is set."""
    usual: str
    """Its value in the experiment of the claim, in words."""
    other: str


def in_other_settings(evidence: Evidence, experiment: str, judge: Judge, *others: OtherSetting) -> Finding:
    """Judge a claim by its experiment; it depends on each setting with which another experiment decides otherwise.

    In a variant only its own experiment is asked: one thing is changed at a time.
    """
    finding = judge(evidence, experiment)
    if evidence.variant != AS_ASSUMED:
        return finding
    findings: dict[OtherSetting, Finding] = {}
    measured = [finding.measured]
    for other in others:
        try:
            findings[other] = judge(evidence, other.experiment)
            measured.append(f"{other.other} {findings[other].measured}")
        except NotMeasuredError:
            measured.append(f"not run {other.other}")
    finding = replace(finding, measured="; ".join(measured))
    if finding.holds is None:
        return finding
    turning = [other for other, one in findings.items() if one.holds is not None and one.holds != finding.holds]
    settings = [
        f"{other.about}: {worded(finding.holds)} {other.usual}, {worded(findings[other].holds)} {other.other}"
        for other in turning
    ]
    return replace(finding, depends_on="; ".join(filter(None, [finding.depends_on, *settings])))


def worded(holds: bool | None) -> str:
    """Return what is found with one value of a setting, in a word."""
    return HOLDS if holds else FAILS
