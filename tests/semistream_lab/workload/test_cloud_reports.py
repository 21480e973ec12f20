"""Cloud reports: the format is read as it is documented, and joins on the longitude are right."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joined_rows import assert_joined_as_duckdb_does

from semistream.core.errors import CorruptTableError, InvalidSettingError
from semistream_lab.workload import cloud_sample, clouds

#        date    I LAT  LON  ID   Lww NNhh CLCMCHAM AH UMUHICSA  RI
LAND = "82010306" + "1" + " 4751" + "  852" + "06660" + "1" + "-1" + "8" + " 7" + "-1" + "11" + "12" + "-1" + (
    "700" + "900" + "7" + "9" + " 7" + "-123" + "  11"
)  # fmt: skip
SHIP = "81123121" + "0" + "-1230" + "36000" + " 1100" + "2" + " 3" + "0" + " 0" + "-1" + " 0" + " 0" + " 0" + (
    "  0" + "  0" + "0" + "0" + " 0" + " 405" + "-110"
)  # fmt: skip


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_a_report_is_read_by_its_columns(tmp_path: Path) -> None:
    land, ship = clouds.reports(written(tmp_path / "reports", LAND, SHIP)).read_all().to_pylist()
    assert land == {
        "observed": datetime(1982, 1, 3, 6, tzinfo=UTC),
        "is_light": 1,
        "latitude": 4751,
        "longitude": 852,
        "station": 6660,
        "land_or_ocean": 1,
        "present_weather": None,
        "total_cloud_cover": 8,
        "lower_cloud_amount": 7,
        "lower_cloud_height": None,
        "low_cloud_type": 11,
        "middle_cloud_type": 12,
        "high_cloud_type": None,
        "middle_cloud_amount": 700,
        "high_cloud_amount": None,
        "visible_middle_cloud_amount": 7,
        "visible_high_cloud_amount": None,
        "change_code": 7,
        "solar_altitude": -123,
        "lunar_illuminance": 11,
    }
    assert ship["observed"] == datetime(1981, 12, 31, 21, tzinfo=UTC)
    assert (ship["latitude"], ship["longitude"], ship["station"]) == (-1230, 36_000, 1100)
    assert (ship["solar_altitude"], ship["lunar_illuminance"]) == (405, -110)


def test_the_fields_of_a_report_are_all_its_characters() -> None:
    places = [place for field in clouds.REPORT_FIELDS for place in range(field.start, field.start + field.width)]
    assert [*range(8), *places] == list(range(clouds.RECORD_CHARACTERS))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("behind", ["", "10132 35180 123 45 49210"])
def test_line_ends_a_missing_last_one_and_the_longer_records_do_not_matter(
    tmp_path: Path, end: str, behind: str
) -> None:
    path = tmp_path / "reports"
    path.write_bytes(end.join([LAND + behind, SHIP + behind]).encode())
    expected = clouds.reports(written(tmp_path / "plain", LAND, SHIP)).read_all()
    assert clouds.reports(path).read_all().equals(expected)
    path.write_bytes(path.read_bytes() + end.encode())
    assert clouds.reports(path, batch_rows=1).read_all().equals(expected)


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (LAND[:-1], 2),
        (LAND + " ", 2),
        ("", 2),
        (LAND.replace("4751", "47x1"), 2),
        (LAND.replace(" 4751", "47 51"), 2),
        (LAND.replace(" 4751", "     "), 2),
        (LAND.replace("  852", "36001"), 2),
        (LAND.replace("  852", "   -1"), 2),
        (LAND.replace("820103", "821303"), 2),
        (LAND.replace("820103", "820230"), 2),
        (LAND.replace("82010306", "82010324"), 2),
    ],
)
def test_a_line_that_is_no_report_is_named(tmp_path: Path, line: str, number: int) -> None:
    path = written(tmp_path / "reports", LAND, line)
    with pytest.raises(CorruptTableError, match=f"Line {number} of .*reports is not a cloud report"):
        clouds.reports(path).read_all()


@given(st.binary(max_size=300))
def test_other_bytes_are_refused_or_read_but_never_break_the_reader(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("bytes") / "reports"
    path.write_bytes(content)
    try:
        clouds.reports(path).read_all()
    except CorruptTableError:
        return
    assert not content, "what is no report is refused"


def test_several_files_are_read_one_after_the_other_and_a_missing_one_is_told_at_once(tmp_path: Path) -> None:
    land, ship = written(tmp_path / "land", LAND), written(tmp_path / "ship", SHIP)
    both = clouds.reports([land, ship]).read_all()
    assert both["longitude"].to_pylist() == [852, 36_000]
    assert clouds.longitude_keys([land, ship]).draw(5).tolist() == [852, 36_000, 852, 36_000, 852]
    for read in (clouds.reports, clouds.longitude_keys):
        with pytest.raises(InvalidSettingError, match="There is no file"):
            read(tmp_path / "sea")


def test_a_sample_is_the_same_for_the_same_arguments_and_never_overwrites(tmp_path: Path) -> None:
    first = cloud_sample.write_sample(tmp_path / "first", 1_000, seed=1)
    again = cloud_sample.write_sample(tmp_path / "again", 1_000, seed=1)
    other = cloud_sample.write_sample(tmp_path / "other", 1_000, seed=2)
    assert first.read_bytes() == again.read_bytes() != other.read_bytes()
    with pytest.raises(FileExistsError):
        cloud_sample.write_sample(first, 1, seed=1)


def test_a_sample_is_marked_as_generated_and_lies_in_the_documented_ranges(tmp_path: Path) -> None:
    rows = clouds.reports(cloud_sample.write_sample(tmp_path / "sample", 70_000, seed=3, year=1984, month=2)).read_all()
    column = {name: rows[name].drop_null().to_numpy() for name in rows.schema.names}
    assert column["station"].min() >= cloud_sample.FIRST_GENERATED_STATION
    assert set(np.unique(column["land_or_ocean"])) == {1, 2}
    for name, least, most in (
        ("latitude", -9000, 9000),
        ("longitude", 0, 36_000),
        ("total_cloud_cover", 0, 8),
        ("low_cloud_type", 0, 11),
        ("middle_cloud_type", 0, 12),
        ("middle_cloud_amount", 0, 800),
        ("visible_high_cloud_amount", 0, 8),
        ("solar_altitude", -900, 900),
        ("lunar_illuminance", -110, 117),
    ):
        assert least <= column[name].min() < column[name].max() <= most, name
    observed = rows["observed"].to_pylist()
    assert observed == sorted(observed)
    assert observed[0] == datetime(1984, 2, 1, tzinfo=UTC)
    assert observed[-1] == datetime(1984, 2, 29, 21, tzinfo=UTC)


def test_reports_of_a_sample_crowd_at_few_longitudes(tmp_path: Path) -> None:
    keys = clouds.longitude_keys(cloud_sample.write_sample(tmp_path / "sample", 50_000, seed=4)).draw(50_000)
    counts = np.sort(np.unique(keys, return_counts=True)[1])[::-1]
    assert counts[: len(counts) // 5].sum() > 0.6 * len(keys)
    assert len(counts) < 4_000


def test_a_join_on_the_longitude_is_many_to_many_and_gives_the_rows_of_duckdb(tmp_path: Path) -> None:
    april = clouds.reports(cloud_sample.write_sample(tmp_path / "april", 2_000, seed=5, month=4)).read_all()
    december = clouds.reports(cloud_sample.write_sample(tmp_path / "december", 500, seed=5)).read_all()
    rows = assert_joined_as_duckdb_does(december, april, ["longitude"], tmp_path, unique=False)
    assert rows.num_rows > 2 * december.num_rows
    assert rows["master_station"].null_count > 0, "some longitudes are not in the table"


def test_an_empty_file_has_no_reports_and_no_keys(tmp_path: Path) -> None:
    empty = cloud_sample.write_sample(tmp_path / "empty", 0, seed=0)
    assert clouds.reports(empty).read_all().equals(pa.Table.from_batches([], schema=clouds.REPORTS_SCHEMA))
    with pytest.raises(InvalidSettingError, match="Data without rows has no keys"):
        clouds.longitude_keys(empty).draw(1)
