"""Settings that a paper does not print, each run in another way: a claim that one of them turns round depends on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    otherwise: list[Otherwise] = []
    measured = [finding.measured]
    for other in others:
        try:
            found = judge(evidence, other.experiment)
        except NotMeasuredError:
            measured.append(f"not run {other.other}")
        else:
            otherwise.append(Otherwise(other.about, other.usual, other.other, found.holds))
            measured.append(f"{other.other} {found.measured}")
    return turned_by(replace(finding, measured="; ".join(measured)), otherwise)


@dataclass(frozen=True)
class Otherwise:
    """What is found with another value of a setting."""

    about: str
    """What is set."""
    usual: str
    """Its value in the experiment of the claim, in words."""
    other: str
    holds: bool | None


def turned_by(finding: Finding, otherwise: Sequence[Otherwise]) -> Finding:
    """Return the finding with the settings that turn it round."""
    if finding.holds is None:
        return finding
    settings = [
        f"{one.about}: {worded(finding.holds)} {one.usual}, {worded(one.holds)} {one.other}"
        for one in otherwise
        if one.holds is not None and one.holds != finding.holds
    ]
    return replace(finding, depends_on="; ".join(filter(None, [finding.depends_on, *settings])))


def worded(holds: bool | None) -> str:
    """Return what is found with one value of a setting, in a word."""
    return HOLDS if holds else FAILS
