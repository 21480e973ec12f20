"""The papers whose experiments and claims the lab has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A paper, and the range of its claims' numbers."""

    name: str
    """What plans and verdicts call it."""
    about: str
    first_claim: int
    last_claim: int


PAPERS = (
    Paper("HYBRIDJOIN", "HYBRIDJOIN for near-real-time data warehousing", 1, 31),
    Paper("X-HYBRIDJOIN", "Efficient processing of streaming updates with archived master data", 32, 60),
    Paper("Optimised X-HYBRIDJOIN", "Two phases and two hash tables", 61, 70),
    Paper("Frequent pages", "A priority queue of frequent pages for semi-stream joins", 71, 92),
    Paper("Parallel CACHEJOIN", "P-CACHEJOIN and OP-CACHEJOIN: phases side by side", 93, 108),
)
CLAIM_COUNT = PAPERS[-1].last_claim


def paper_of(number: int) -> Paper:
    """Return the paper that makes a claim."""
    return next(paper for paper in PAPERS if paper.first_claim <= number <= paper.last_claim)
