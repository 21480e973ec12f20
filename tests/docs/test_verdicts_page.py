"""The pages about verdicts say what the recorded verdicts say."""

from __future__ import annotations

import json
from pathlib import Path

from semistream_lab.experiments.papers import CLAIM_COUNT
from semistream_lab.experiments.verdicts_page import headline, verdicts_page

EXPERIMENTS = Path(__file__).parents[2] / "docs" / "experiments"
VERDICTS = json.loads((EXPERIMENTS / "claims.json").read_text(encoding="utf-8"))


def test_the_page_of_verdicts_is_made_of_the_recorded_verdicts() -> None:
    assert [one["number"] for one in VERDICTS] == list(range(1, CLAIM_COUNT + 1))
    assert (EXPERIMENTS / "verdicts.md").read_text(encoding="utf-8") == verdicts_page(VERDICTS)


def test_the_headline_counts_each_kind() -> None:
    words = " ".join((EXPERIMENTS / "README.md").read_text(encoding="utf-8").split())
    assert headline(VERDICTS) in words
