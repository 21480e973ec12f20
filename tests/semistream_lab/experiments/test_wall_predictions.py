"""Predictions in real time: from costs that were measured beside the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from semistream.core.costs import NO_COSTS, PAPERS
from semistream.core.errors import InvalidSettingError
from semistream_lab.experiments.measuring import wall_clock
from semistream_lab.experiments.point import Point
from semistream_lab.experiments.predictions import PREDICTED, PRINTED, TABLE_SIZES, cost_columns, predictions

ROWS = 20_000
WALL = Point(algorithm="hybridjoin", master_rows=ROWS, memory_bytes=1_000_000, clock="wall", queues=3.0)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    wall_clock.build_table(ROWS, folder)
    return folder


@pytest.mark.parametrize("name", ["hybridjoin", "x-hybridjoin-tuned", "optimised-x-hybridjoin", "inlj"])
def test_a_run_in_real_time_brings_the_costs_of_its_operations(name: str, tables: Path) -> None:
    point = Point(**{**WALL.to_json(), "algorithm": name, "tuned": "tuned" in name, "tuples": 2_000})  # type: ignore[arg-type]
    row = wall_clock.run(point, tables)
    assert set(cost_columns(NO_COSTS)) <= set(row)
    assert float(row["seconds"] or 0) > 0
    expected = predictions(point, row)[PREDICTED]
    assert expected is not None
    assert expected > 0


def test_rows_of_the_generated_table_are_as_long_as_the_papers(tables: Path) -> None:
    row = wall_clock.run(WALL, tables)
    assert [row[name] for name in TABLE_SIZES] == [120, 8_160]


def test_without_measured_costs_nothing_is_expected_in_real_time() -> None:
    assert predictions(WALL) == {PREDICTED: None, PRINTED: None}
    assert predictions(WALL, {"service_rate": 1.0}) == {PREDICTED: None, PRINTED: None}


def test_the_expected_rate_follows_from_the_measured_costs_alone() -> None:
    row = {**cost_columns(PAPERS), "table_row_bytes": 120, "table_page_bytes": 8_160, "service_rate": 5.0}
    slower = {**row, "cost_seek_seconds": 2 * PAPERS.seek_seconds, "service_rate": 500.0}
    first, second = (predictions(WALL, each)[PREDICTED] for each in (row, slower))
    assert first is not None
    assert second is not None
    assert second < first
    assert predictions(WALL, {**row, "service_rate": 7.0})[PREDICTED] == first


def test_what_runs_side_by_side_has_no_costs_and_no_expectation(tables: Path) -> None:
    point = Point(**{**WALL.to_json(), "algorithm": "p-cachejoin"})  # type: ignore[arg-type]
    row = wall_clock.run(point, tables)
    assert not set(cost_columns(NO_COSTS)) & set(row)
    assert predictions(point, row)[PREDICTED] is None


@pytest.mark.parametrize("other", [{"data": "tpch"}, {"arrival_rate": 10.0}, {"kind": "page-use"}])
def test_real_time_refuses_what_it_cannot_measure(other: dict[str, object], tables: Path) -> None:
    with pytest.raises(InvalidSettingError, match="saturated streams of generated keys"):
        wall_clock.run(Point(**{**WALL.to_json(), **other}), tables)  # type: ignore[arg-type]
