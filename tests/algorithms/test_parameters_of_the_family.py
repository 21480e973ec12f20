"""Each parameter stands in one place, and whoever asks about it asks there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from semistream.algorithms.hybridjoin import HYBRIDJOIN
from semistream.algorithms.registry import ALGORITHMS
from semistream.cli.algorithms import parameter_rows
from semistream.core.errors import InvalidSettingError
from semistream.engine.parameters import Flag, Number, Tuning, named
from semistream_lab.cost import Situation
from semistream_lab.cost.tuning_ranges import axes_of

ROOT = Path(__file__).parents[2]
YES_OR_NO = {"absent", "age", "balance", "gaps", "measured", "pages"}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_defaults_are_allowed_and_every_parameter_says_what_it_means(name: str) -> None:
    for key, parameter in ALGORITHMS[name].parameters.items():
        assert key == parameter.name
        assert parameter.checked(parameter.default) == parameter.default
        assert 10 < len(parameter.about) < 110
        assert "\n" not in parameter.about


def test_knobs_that_mean_yes_or_no_are_bools() -> None:
    flags = {p.name for recipe in ALGORITHMS.values() for p in recipe.parameters.values() if isinstance(p, Flag)}
    assert flags == YES_OR_NO


def test_checks_command_line_and_tuner_know_a_new_parameter_by_its_definition_alone() -> None:
    warmth = Number("warmth", 2.0, low=0, high=10, about="how warm it is", tuning=Tuning(1.0, 4.0))
    recipe = replace(HYBRIDJOIN, parameters={**HYBRIDJOIN.parameters, **named(warmth)})
    assert recipe.values({"warmth": 3})[warmth] == 3.0
    with pytest.raises(InvalidSettingError, match="'warmth' must be from 0 to 10"):
        recipe.values({"warmth": 11})
    assert [row["about"] for row in parameter_rows(recipe) if row["name"] == "warmth"] == ["how warm it is"]
    assert "warmth" in {axis.parameter for axis in axes_of(recipe, Situation(40_000, 1_000_000, 1.0))}


def settings_in_documents() -> Iterator[tuple[str, str, float]]:
    """Yield what pages of the documentation set: algorithm, parameter, value."""
    for page in sorted((ROOT / "docs" / "algorithms").glob("*.md")):
        for line in page.read_text().splitlines():
            if named_there := re.search(r"--algorithm ([\w-]+)|algorithm=\"([\w-]+)\"", line):
                algorithm = named_there[1] or named_there[2]
                for pattern in (r"--parameter (\w+)=([\d.]+)", r"\"(\w+)\": ([\d.]+)"):
                    yield from ((algorithm, name, float(value)) for name, value in re.findall(pattern, line))
            elif page.stem == "demandjoin" and line.startswith("|"):
                for name, value in re.findall(r"\b(\w+)=([\d.]+|true|false)", line.rsplit("|", 2)[1]):
                    yield "demandjoin", name, json.loads(value)


def test_what_the_documentation_sets_is_there_and_allowed() -> None:
    documented = list(settings_in_documents())
    assert len(documented) > 20
    for algorithm, name, value in documented:
        ALGORITHMS[algorithm].values({name: value})
