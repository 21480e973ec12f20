"""The list of algorithms."""

from __future__ import annotations

from command_line import flat_objects, succeed

from semistream.algorithms.registry import ALGORITHMS, DEFAULT_ALGORITHM


def test_every_algorithm_has_one_line() -> None:
    lines = succeed("algorithms").splitlines()
    for recipe in ALGORITHMS.values():
        found = [line for line in lines if line.split()[:1] == [recipe.name]]
        assert len(found) == 1
        assert recipe.summary in found[0]


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
