"""The pages for users: short enough, complete, and without dead links."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_pages import DOCS, REPOSITORY, blocks_of, headings_of, links_of, user_pages

MAX_README_WORDS = 800
PAGES = [*user_pages(), *(REPOSITORY / "benchmarks").glob("*.md"), *DOCS.glob("*/*.md"), *REPOSITORY.glob("[A-Z]*.md")]


def test_the_readme_is_short() -> None:
    assert len((REPOSITORY / "README.md").read_text(encoding="utf-8").split()) <= MAX_README_WORDS


def test_the_index_leads_to_every_page_and_folder_of_the_documents() -> None:
    named = {link.split("#")[0] for link in links_of(DOCS / "README.md")}
    pages = {page.name for page in DOCS.glob("*.md")} - {"README.md"}
    folders = {f"{folder.name}/README.md" for folder in DOCS.iterdir() if (folder / "README.md").exists()}
    assert pages | folders | {"decisions/"} <= named


@pytest.mark.parametrize("page", sorted(set(PAGES)), ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    dead = []
    for link in links_of(page):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        known = target.exists() and (not anchor or target.suffix != ".md" or anchor in headings_of(target))
        if not known:
            dead.append(link)
    assert dead == []


def test_the_package_index_shows_the_example_of_the_readme() -> None:
    shown = [block.text for block in blocks_of(DOCS / "package_index.md") if block.language == "python"]
    example = [block.text for block in blocks_of(REPOSITORY / "README.md") if block.language == "python"]
    assert example[0] in shown
