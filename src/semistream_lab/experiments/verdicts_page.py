"""The verdicts on the papers' claims as a page of Markdown, which the docs have, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from semistream.core.flat_json import Scalar
from semistream_lab.experiments.judging import VERDICTS
from semistream_lab.experiments.papers import PAPERS

MARKS = {"holds": "✓", "fails": "✗", "depends": "±", "unjudged": "–"}
_ABOUT = """\
- *Depends*: a size or a threshold that is not printed, the order of R where the paper does not say, where a read begins
  that looks a partition up by a key, or a constant of the machine (seek, sequential request, bandwidth, processor) that
  turns the finding round. The column says which, and for which values.
- *Unjudged*: the cost profile was calibrated on the fact, a lead is within the 95% intervals of the runs, or what the
  claim is about was not measured.
- *s* and *sh* are for sorted and shuffled ranks, *k* for reads that begin at the key, *z* for keys by Zipf's law
  instead of the papers' generator; ✓ holds, ✗ fails, ± depends, – unjudged.
"""


def headline(verdicts: Sequence[Mapping[str, Scalar]]) -> str:
    """Count the verdicts in a sentence."""
    counts = Counter(str(one["verdict"]) for one in verdicts)
    holds, fails, depends, unjudged = (counts[verdict] for verdict in VERDICTS)
    return (
        f"{holds} claims hold, {fails} fail, {depends} depend on a setting that no paper prints, "
        f"{unjudged} are unjudged"
    )


def verdicts_page(verdicts: Sequence[Mapping[str, Scalar]]) -> str:
    """Return the page: a table for each paper."""
    parts = [
        f"# Verdicts\n\nWhat the lab says about the papers' {len(verdicts)} claims: **{headline(verdicts)}.**\n",
        _ABOUT,
    ]
    parts += [_table(paper.name, [one for one in verdicts if one["paper"] == paper.name]) for paper in PAPERS]
    return "\n".join(parts)


def _table(paper: str, verdicts: Sequence[Mapping[str, Scalar]]) -> str:
    head = "| | claim | verdict | s | sh | k | z | measured | depends on | reason |\n" + "|---" * 10 + "|\n"
    return f"## {paper}\n\n{head}" + "\n".join(_row(one) for one in verdicts) + "\n"


def _row(one: Mapping[str, Scalar]) -> str:
    cells = [
        one["number"],
        one["claim"],
        one["verdict"],
        *(MARKS.get(str(one[f"verdict_{case}"]), "–") for case in ("sorted", "shuffled")),
        *(MARKS.get(str(one[f"verdict_{case}"]), "–") for case in ("from_the_key_on", "discrete_keys")),
        one["measured"],
        one["depends_on"],
        one["reason"],
    ]
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
