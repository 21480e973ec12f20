"""The sentences that docs/troubleshooting.md quotes are those of the code."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from doc_pages import DOCS, REPOSITORY

NOT_OURS = ("No module named 'semistream'", "No module named 'pyarrow'", "Python in worker has different version")
PAGE = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
CELLS = re.findall(r"^\| (.+?) \|", PAGE, flags=re.MULTILINE)
QUOTED = [
    quoted
    for cell in CELLS
    for quoted in re.findall(r"`([^`]+)`", cell)
    if " " in quoted and quoted not in NOT_OURS and not cell.startswith("A row")
]


@cache
def _sentences() -> tuple[str, ...]:
    """Return the texts in the sources, with … for what is filled in."""
    sentences = []
    for file in (REPOSITORY / "src" / "semistream").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                sentences.append(
                    "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                sentences.append(node.value)
    return tuple(sentences)


@pytest.mark.parametrize("quoted", QUOTED)
def test_a_quoted_sentence_is_in_the_code(quoted: str) -> None:
    parts = [re.escape(part.strip()) for part in quoted.split("…") if part.strip()]
    pattern = re.compile(".*?".join(parts), re.DOTALL)
    assert any(pattern.search(sentence) for sentence in _sentences())


def test_most_rows_of_the_page_quote_something() -> None:
    assert len(QUOTED) >= 20
