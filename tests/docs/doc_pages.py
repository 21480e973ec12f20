"""The pages that users read, and the code blocks in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
RUN = ("python", "sh", "toml")
"""Languages whose blocks are run or checked."""
SHOWN = ("text", "json", "mermaid")
"""Languages of blocks that only show something, such as what a command prints."""

_MARK = re.compile(r"<!--\s*not run:(?P<reason>.*?)-->\s*", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block as it is printed."""

    page: str
    line: int
    """Of its first line of code, counted from 1."""
    language: str
    text: str
    not_run: str | None
    """The reason in the comment before it, or None if it is to be run."""

    @property
    def name(self) -> str:
        """Where the block is, for people."""
        return f"{self.page}:{self.line}"


def user_pages() -> list[Path]:
    """Return README.md and the pages directly in docs/."""
    return [REPOSITORY / "README.md", *sorted(DOCS.glob("*.md"))]


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page in their order."""
    name = page.relative_to(REPOSITORY).as_posix()
    blocks = []
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type == "fence":
            assert token.map is not None
            blocks.append(Block(name, token.map[0] + 2, token.info.strip(), token.content, _reason(before)))
    return blocks


def stray_marks(page: Path) -> list[str]:
    """Return marks that stand before something else than a block."""
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    return [
        token.content.strip()
        for token, after in zip(tokens, [*tokens[1:], None], strict=True)
        if token.type == "html_block" and "not run" in token.content and (after is None or after.type != "fence")
    ]


def links_of(page: Path) -> list[str]:
    """Return where the links and images of a page lead."""
    return _links(MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")))


def headings_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    texts = [inline.content for token, inline in pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts}


def _reason(before: Token | None) -> str | None:
    if before is None or before.type != "html_block":
        return None
    mark = _MARK.fullmatch(before.content)
    return mark["reason"].strip() if mark else None


def _links(tokens: list[Token]) -> list[str]:
    own = [
        str(token.attrs.get("href") or token.attrs.get("src"))
        for token in tokens
        if token.type in ("link_open", "image")
    ]
    return own + [link for token in tokens for link in _links(token.children or [])]
