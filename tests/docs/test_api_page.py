"""docs/api.md is what the docstrings say, with every parameter of the public names."""

from __future__ import annotations

import importlib.util
import inspect
from types import ModuleType

import pytest
from doc_pages import DOCS, REPOSITORY

import semistream as ss


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_api_page", REPOSITORY / "scripts" / "write_api_page.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_page_is_what_the_script_writes(script: ModuleType) -> None:
    written = (DOCS / "api.md").read_text(encoding="utf-8")
    assert written == script.page(), "run `python scripts/write_api_page.py`"


@pytest.mark.parametrize("name", ["enrich", "join", "MasterTable.build", "MasterTable.merge", "MasterTable.vacuum"])
def test_every_parameter_has_a_line(name: str) -> None:
    target = ss
    for part in name.split("."):
        target = getattr(target, part)
    sections = (DOCS / "api.md").read_text(encoding="utf-8").split("\n##")
    section = next(each for each in sections if each.lstrip("# ").startswith(f"`{name}`\n"))
    parameters = set(inspect.signature(target).parameters) - {"self"}
    assert {parameter for parameter in parameters if f"| `{parameter}` |" not in section} == set()


def test_a_parameter_that_no_docstring_explains_is_an_error(script: ModuleType) -> None:
    def merge(upserts: str, order: str) -> None:
        """Merge rows.

        Args:
            upserts: The rows: with a colon in the text,
                and a second line.
        """

    with pytest.raises(SystemExit, match="does not explain order"):
        list(script._callable("## merge", "merge", merge))
    assert script._arguments(merge) == {"upserts": "The rows: with a colon in the text, and a second line."}
