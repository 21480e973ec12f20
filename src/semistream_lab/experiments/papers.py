"""The papers whose experiments and claims the lab has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from semistream_lab.experiments.point import Law


@dataclass(frozen=True)
class Paper:
    """A paper, and the range of its claims' numbers."""

    name: str
    """What plans and verdicts call it."""
    about: str
    first_claim: int
    last_claim: int
    law: Law = "integral"
    """How it draws keys: every one of them inverts the integral of 1/x^e."""


PAPERS = (
    Paper("HYBRIDJOIN", "An index join whose reads serve many waiting tuples", 1, 31),
    Paper("X-HYBRIDJOIN", "HYBRIDJOIN with the most used pages pinned", 32, 60),
    Paper("Optimised X-HYBRIDJOIN", "Frequent master tuples in a hash table that arriving tuples probe first", 61, 70),
    Paper("Priority queue of frequent pages", "Reading frequent pages on a schedule", 71, 92),
    Paper("P- and OP-CACHEJOIN", "The phases of CACHEJOIN side by side", 93, 108),
)
LAWS: Mapping[str, Law] = {paper.name: paper.law for paper in PAPERS}
"""How each paper draws keys."""
CLAIM_COUNT = PAPERS[-1].last_claim


def paper_of(number: int) -> Paper:
    """Return the paper that makes a claim."""
    return next(paper for paper in PAPERS if paper.first_claim <= number <= paper.last_claim)
