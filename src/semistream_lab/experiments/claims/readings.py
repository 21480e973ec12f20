"""How the paper on the priority queue of frequent pages measured, and what of it can be read otherwise.

A claim is judged with what the paper prints: pages of 8 kB read one by one, and -L at 30% of the queue. It is judged
again with the larger reads of the other papers, and against -L at 90%, since 30% is the best position only where the
paper found it to be. A claim that another reading turns round depends on it. In a variant only what is printed is
judged: one thing is changed at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from semistream_lab.experiments.claims.other_settings import Otherwise, turned_by, worded
from semistream_lab.experiments.evidence import Evidence, NotMeasuredError
from semistream_lab.experiments.judging import Finding
from semistream_lab.experiments.variants import AS_ASSUMED

MACHINE = "papers-ssd"
"""The cost profile that stands for the paper's machine."""


@dataclass(frozen=True)
class Reading:
    """One way to read how the paper measured."""

    setting: str = ""
    """What is read otherwise, in words."""
    printed: str = ""
    """What the paper has there."""
    value: str = ""
    """What is there instead."""
    position: str = "30%"
    suffix: str = ""
    """What the names of experiments end with."""


AS_PRINTED = Reading()
LATE_POSITION = Reading("the look-up position of -L", "at 30% as published", "at 90%", position="90%")
LARGE_READS = Reading("what a read brings", "with one page of 8 kB", "with 13 pages", suffix="-reads")

Judge = Callable[[Evidence, str, Reading], Finding]
"""Judges one reading, by the experiment of that name."""


def by_readings(evidence: Evidence, experiment: str, judge: Judge, readings: Sequence[Reading] = ()) -> Finding:
    """Return the finding with what the paper prints, and the settings that turn it round if read otherwise."""
    plan = evidence.plans.get(experiment)
    if evidence.ranks == "sorted" and plan is not None and "sorted" not in plan.ranks:
        raise NotMeasuredError("the paper's table is not sorted by use")
    printed = judge(evidence, experiment, AS_PRINTED)
    otherwise: list[Otherwise] = []
    notes = []
    for reading in readings if evidence.variant == AS_ASSUMED else ():
        found = judge(evidence, experiment + reading.suffix, reading)
        shown = f"{reading.value} ({found.measured})"
        otherwise.append(Otherwise(reading.setting, reading.printed, shown, found.holds))
        if found.holds != printed.holds and None in (printed.holds, found.holds):
            notes.append(f"It {'is undecided' if found.holds is None else worded(found.holds)} {shown}.")
    return turned_by(replace(printed, reason=" ".join([printed.reason, *notes]).strip()), otherwise)
