"""Claims of the paper on the priority queue of frequent pages about which pages are read, and what reads bring."""

from __future__ import annotations

from semistream_lab.experiments.claims.comparing import listed, rises
from semistream_lab.experiments.claims.readings import LARGE_READS, Reading, by_readings
from semistream_lab.experiments.evidence import Evidence
from semistream_lab.experiments.judging import Finding, claim

_MANY = 0.2
"""A substantial part of the look-ups: at least a fifth."""
_NOT_MUCH_MORE = 1.5
"""Reads of the hottest tenth of the pages are not much more frequent up to half as many again as of the others."""
_LITTLE_MEMORY = 0.01
_LINEAR = 0.1
"""Matches grow linearly if they are within a tenth of page share × tuples entered, however long the interval."""
_RARE = 0.05
_LESS_USEFUL = 0.8
"""The last tenth of the reads is less useful if it serves at most 80% of what the first does."""


@claim(
    76,
    "pq-pages",
    "Many look-ups of a fixed position hit pages that are not frequent.",
    "at exponent 1 at least 20% of the reads at 30% are of pages that the stream asks for less than twice the average",
    ranks="shuffled",
    priced=False,
)
def many_lookups_are_of_infrequent_pages(evidence: Evidence) -> Finding:
    return by_readings(evidence, "pq-pages", _many_of_infrequent_pages, [LARGE_READS])


def _many_of_infrequent_pages(evidence: Evidence, experiment: str, _: Reading) -> Finding:
    share, rare = (
        evidence.value(experiment, "HYBRIDJOIN-L at 30%", 1.0, name)
        for name in ("reads_of_infrequent", "reads_of_rare")
    )
    return Finding(share >= _MANY, f"{share:.0%} of the reads; {rare:.0%} are of pages below the average")


@claim(
    87,
    "pq-pages",
    "The priority queue needs little memory: 16 bytes a node.",
    "what is kept for it is at most 1% of the memory",
    ranks="shuffled",
    priced=False,
)
def queue_needs_little_memory(evidence: Evidence) -> Finding:
    return by_readings(evidence, "pq-pages", _needs_little_memory)


def _needs_little_memory(evidence: Evidence, experiment: str, _: Reading) -> Finding:
    reserved, used, longest = (
        evidence.value(experiment, "HYBRIDJOIN-PQ", 1.0, name)
        for name in ("memory_page_book-keeping", "queue_bytes", "longest_queue")
    )
    memory = reserved + sum(
        evidence.value(experiment, "HYBRIDJOIN-PQ", 1.0, f"memory_{name}") for name in ("disk_buffer", "waiting_tuples")
    )
    measured = (
        f"{reserved / 1e3:.0f} kB reserved, {reserved / memory:.2%} of the memory; "
        f"at most {longest:.0f} nodes, {used:.0f} bytes"
    )
    return Finding(reserved / memory <= _LITTLE_MEMORY, measured)


@claim(
    88,
    "pq-pages",
    "HYBRIDJOIN reads frequent pages not much more often than others.",
    "at exponent 1 the hottest tenth of the pages is read at most 1.5 times as often as the rest",
    ranks="shuffled",
    priced=False,
)
def frequent_pages_are_not_read_more(evidence: Evidence) -> Finding:
    return by_readings(evidence, "pq-pages", _not_read_more, [LARGE_READS])


def _not_read_more(evidence: Evidence, experiment: str, _: Reading) -> Finding:
    reads, tuples = (
        evidence.value(experiment, "HYBRIDJOIN", 1.0, name) for name in ("hot_reads_ratio", "hot_tuples_ratio")
    )
    return Finding(reads <= _NOT_MUCH_MORE, f"{reads:.2f} times as often, though asked for {tuples:.1f} times as often")


@claim(
    89,
    "pq-pages",
    "The expected matches of a page grow linearly with the tuples that have entered.",
    "scheduled reads match page share × tuples entered since the last read within 10%, for short and long intervals",
    ranks="shuffled",
    priced=False,
)
def matches_grow_linearly(evidence: Evidence) -> Finding:
    return by_readings(evidence, "pq-pages", _grow_linearly, [LARGE_READS])


def _grow_linearly(evidence: Evidence, experiment: str, _: Reading) -> Finding:
    lowest, highest, shortest, longest, correlation = (
        evidence.value(experiment, "HYBRIDJOIN-PQ", 1.0, name)
        for name in (
            "min_matches_per_expected",
            "max_matches_per_expected",
            "shortest_interval",
            "longest_interval",
            "matches_correlation",
        )
    )
    measured = (
        f"{lowest:.3f} to {highest:.3f} of what is expected, for intervals of {shortest:.0f} to {longest:.0f} tuples; "
        f"correlation {correlation:.3f}"
    )
    return Finding(lowest >= 1 - _LINEAR and highest <= 1 + _LINEAR, measured)


@claim(
    90,
    "pq-pages",
    "Pages that are not frequent rarely enter the priority queue by accident.",
    "at every exponent at most 5% of the entries are of pages that the stream asks for less than the average",
    ranks="shuffled",
    priced=False,
)
def accidental_entries_are_rare(evidence: Evidence) -> Finding:
    return by_readings(evidence, "pq-pages", _rarely_by_accident, [LARGE_READS])


def _rarely_by_accident(evidence: Evidence, experiment: str, _: Reading) -> Finding:
    shares, parts = [], []
    for x in evidence.xs(experiment):
        entries = evidence.value(experiment, "HYBRIDJOIN-PQ", x, "queue_entries")
        if not entries:
            parts.append(f"none enters at {x:g}")
            continue
        rare, infrequent = (
            evidence.value(experiment, "HYBRIDJOIN-PQ", x, name)
            for name in ("entries_of_rare", "entries_of_infrequent")
        )
        shares.append(rare)
        parts.append(f"{rare:.1%} of {entries:.0f} at {x:g} ({infrequent:.0%} below twice the average)")
    holds = all(share <= _RARE for share in shares)
    reason = "Where the skew is weak, no page stands out, and those that enter do so by chance."
    return Finding(holds, "; ".join(parts), "" if holds else reason)


@claim(
    92,
    "pq-ssij",
    "Reads of SSIJ get less useful in the course of a join phase, because its buffer is not refilled.",
    "the tuples served by a read fall along the phase, to at most 80% in the last tenth",
    ranks="shuffled",
    priced=False,
)
def later_reads_are_less_useful(evidence: Evidence) -> Finding:
    return by_readings(evidence, "pq-ssij", _less_useful_later)


def _less_useful_later(evidence: Evidence, experiment: str, _: Reading) -> Finding:
    served = evidence.curve(experiment, "SSIJ")
    holds = rises(served[::-1], 0.05) and bool(served[-1] <= _LESS_USEFUL * served[0])
    return Finding(holds, f"{listed(served, '{:.0f}')} tuples a read in the tenths of a phase")
