"""docs/pipeline_file.md names exactly the tables, keys and options that the reader of pipelines knows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from doc_pages import DOCS, REPOSITORY

from semistream.core.errors import InvalidSettingError
from semistream.pipeline import (
    reading,
    reading_dimensions,
    reading_sources,
    reading_spark,
    reading_statistics,
    reading_steps,
)
from semistream.pipeline.reading import read_description
from semistream.pipeline.toml_table import TomlTable

PAGE = (DOCS / "pipeline_file.md").read_text(encoding="utf-8")
PIPELINE = """
[pipeline]
name = "options"
checkpoint = "checkpoint"
[source]
format = "{format}"
{schema}
options = {{ {option} = 1 }}
[[dimension]]
table = "products"
on = "product_id"
[sink]
format = "noop"
"""


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Return the keys of each table, as the reader tells them to its tables while it reads a file that has all."""
    keys_of_tables: dict[str, set[str]] = {}

    class Listening(TomlTable):
        def __init__(self, name: str, values: object, known: Iterable[str]) -> None:
            keys = tuple(known)
            keys_of_tables.setdefault(name.split(" ")[0], set()).update(keys)
            super().__init__(name, values, keys)

    for module in (reading, reading_dimensions, reading_sources, reading_statistics, reading_steps, reading_spark):
        monkeypatch.setattr(module, "TomlTable", Listening)
    read_description(REPOSITORY / "examples" / "pipeline_all_settings.toml")
    for steps in ("[[prepare]]", "[[transform]]"):
        keys_of_tables[steps] -= {"on", "within", "time"}  # of drop_duplicates, which the page shows in its line
    return keys_of_tables


def _keys(text: str) -> set[str]:
    """Return what the first column of the tables in a text names."""
    cells = re.findall(r"^\| (`[^|]*) \|", text, flags=re.MULTILINE)
    return {key for cell in cells for key in re.findall(r"`([^`]+)`", cell)}


def _section(title: str) -> str:
    return next(part for part in PAGE.split("\n## ") if part.startswith(f"`{title}`\n"))


def test_the_page_has_every_table_of_the_file(known: dict[str, set[str]]) -> None:
    assert set(re.findall(r"^## `(\[+\w+\]+)`$", PAGE, flags=re.MULTILINE)) == set(known)


@pytest.mark.parametrize(
    "table",
    [
        *("[pipeline]", "[source]", "[[prepare]]", "[enrich]", "[[dimension]]", "[[transform]]"),
        *("[sink]", "[trigger]", "[statistics]", "[spark]"),
    ],
)
def test_a_table_has_a_line_for_each_of_its_keys(table: str, known: dict[str, set[str]]) -> None:
    section = _section(table).split("\nOptions of Spark")[0]
    assert _keys(section) == known[table]


@pytest.mark.parametrize("name", ["json", "csv", "parquet", "socket", "sales"])
def test_the_options_of_a_format_are_those_that_the_reader_allows(name: str, tmp_path: Path) -> None:
    schema = "" if name == "sales" else 'schema = "product_id BIGINT"'
    path = 'path = "incoming"\n' if name in ("json", "csv", "parquet") else ""
    file = tmp_path / "options.toml"
    file.write_text(PIPELINE.format(format=name, schema=path + schema, option="zzzzzzzz"))
    with pytest.raises(InvalidSettingError) as refused:
        read_description(file)
    allowed = set(str(refused.value).split("choose one of ")[1].rstrip(".").split(", "))
    source = _section("[source]")
    if name == "sales":
        assert _keys(source.split("Options of generated sales:")[1]) == allowed
    else:
        line = next(line for line in source.splitlines() if line.startswith(f"| `{name}` |"))
        assert set(re.findall(r"`(\w+)`", line.split("|")[2])) == allowed


def test_drop_duplicates_is_shown_with_all_its_keys() -> None:
    line = next(line for line in PAGE.splitlines() if line.startswith("| `drop_duplicates`"))
    assert all(f"{key} =" in line for key in ("on", "within", "time"))
