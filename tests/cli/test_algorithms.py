"""The list of algorithms."""

from __future__ import annotations

from command_line import flat_objects, succeed

from semistream.algorithms.registry import ALGORITHMS, DEFAULT_ALGORITHM


def test_every_algorithm_has_one_line() -> None:
    lines = succeed("algorithms").splitlines()
    for recipe in ALGORITHMS.values():
        about = [line for line in lines if line.split()[:1] == [recipe.name]]
        assert len(about) == 1
        assert recipe.summary in about[0]


def test_unbounded_waiting_is_marked() -> None:
    shown = succeed("algorithms")
    marked = [line.split()[0] for line in shown.splitlines() if "⚠" in line and line.split()[0] in ALGORITHMS]
    assert marked == [recipe.name for recipe in ALGORITHMS.values() if not recipe.bounded_wait]
    assert "may wait without bound" in shown


def test_json_is_a_list_of_flat_objects() -> None:
    rows = flat_objects(succeed("algorithms", "--json"))
    assert [row["name"] for row in rows] == list(ALGORITHMS)
    assert all(row["summary"] == ALGORITHMS[row["name"]].summary for row in rows)
    assert [row["name"] for row in rows if row["default"]] == [DEFAULT_ALGORITHM]


def test_the_parameters_of_an_algorithm_are_listed_with_default_limits_and_meaning() -> None:
    lines = succeed("algorithms", "demandjoin").splitlines()
    for name, parameter in ALGORITHMS["demandjoin"].parameters.items():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert line.split()[1] == parameter.default_text
        assert parameter.allowed in line
        assert parameter.about.split()[0] in line


def test_the_parameters_of_an_algorithm_as_json_are_flat_objects() -> None:
    rows = flat_objects(succeed("algorithms", "demandjoin", "--json"))
    assert [row["name"] for row in rows] == list(ALGORITHMS["demandjoin"].parameters)
    flag = next(row for row in rows if row["name"] == "balance")
    assert (flag["kind"], flag["default"]) == ("flag", True)


def test_an_algorithm_without_parameters_says_so() -> None:
    assert "oracle has no parameters" in succeed("algorithms", "oracle")
