"""Generated cloud reports in the format of NDP-026B, for tests and experiments without the archive."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np

from semistream.core.arrays import Int64Array, UInt8Array
from semistream.core.errors import InvalidSettingError
from semistream.generator.randomness import random_for
from semistream.generator.settings import whole_number
from semistream_lab.workload.clouds import LONGITUDE, RECORD_CHARACTERS, REPORT_FIELDS

FIRST_GENERATED_STATION = 99_000
"""Generated reports carry station numbers from here on, which no real one has: they go up to 98999."""
_SHIP = 99_999
_LAND_STATIONS = 900
_LAND_SHARE = 0.85
_STATION_EXPONENT = 0.5
_BATCH_ROWS = 1 << 16

# Where land stations and ship routes crowd: the middle and the width in hundredths of a degree, and a share.
_LAND_REGIONS = (
    (1_500, 1_200, 0.35),
    (11_500, 1_500, 0.25),
    (26_500, 1_300, 0.25),
    (7_800, 700, 0.10),
    (30_500, 600, 0.05),
)
_SEA_ROUTES = ((33_000, 2_500, 0.45), (18_000, 5_000, 0.30), (500, 600, 0.15), (9_000, 1_500, 0.10))


def write_sample(
    path: str | PathLike[str],
    count: int,
    *,
    seed: int,
    year: int = 1981,
    month: int = 12,
    stations: int = _LAND_STATIONS,
) -> Path:
    """Write `count` generated reports of one month to a new file and return its path.

    They are not observations. The format, the ranges of the numbers and the crowding of reports at few longitudes are
    like those of the archive: stations stand in a few regions and some report far more often than others, ships are
    spread along routes. The stations are the same for every seed and month, so that a stream of December meets a master
    table of April. The same arguments give the same file.
    """
    path = Path(path)
    count = whole_number("count", count, minimum=0)
    stations = whole_number("stations", stations, minimum=1)
    if stations >= _SHIP - FIRST_GENERATED_STATION:
        raise InvalidSettingError(
            f"There are station numbers for {_SHIP - FIRST_GENERATED_STATION - 1} stations only: ask for fewer."
        )
    days = np.datetime64(f"{year:04d}-{month:02d}", "M")
    day_count = int((days + 1).astype("datetime64[D]").astype(np.int64) - days.astype("datetime64[D]").astype(np.int64))
    random = random_for("cloud reports", seed, year, month)
    with path.open("xb") as file:
        for start in range(0, count, _BATCH_ROWS):
            rows = min(_BATCH_ROWS, count - start)
            # The reports of a file ascend in time.
            hours = (np.arange(start, start + rows) * day_count * 8 // count) * 3
            dates = ((year % 100 * 100 + month) * 100 + hours // 24 + 1) * 100 + hours % 24
            file.write(_records(random, dates, stations).tobytes())
    return path


def _records(random: np.random.Generator, dates: Int64Array, stations: int) -> UInt8Array:
    count = len(dates)
    values = _values(random, count, stations)
    lines = np.full((count, RECORD_CHARACTERS + 1), ord("\n"), dtype=np.uint8)
    _write(lines[:, :8], dates, pad="0")
    for field in REPORT_FIELDS:
        _write(lines[:, field.start : field.start + field.width], values[field.name])
    return lines


def _values(random: np.random.Generator, count: int, stations: int) -> dict[str, Int64Array]:
    station_longitudes, station_latitudes = _station_places(stations)
    ranks = np.arange(1, stations + 1, dtype=np.float64) ** -_STATION_EXPONENT
    station = random.choice(stations, count, p=ranks / ranks.sum())
    at_sea = random.random(count) >= _LAND_SHARE
    total = random.integers(0, 9, count)
    lower = np.minimum(total, random.integers(0, 9, count))
    cloudy = total > 0
    seen = cloudy & (random.random(count) < 0.8)  # otherwise the higher clouds could not be seen
    middle = np.where(seen, np.minimum(total, random.integers(0, 9, count)), 9)
    high = np.where(seen, np.minimum(total, random.integers(0, 9, count)), 9)
    altitude = random.integers(-600, 800, count)
    illuminance = random.integers(-110, 118, count)
    return {
        "is_light": ((altitude >= -90) | (illuminance > 11)).astype(np.int64),
        # A ship gives its place in tenths of a degree.
        "latitude": np.where(at_sea, random.integers(-600, 700, count) * 10, station_latitudes[station]),
        LONGITUDE: np.where(at_sea, _crowded(random, count, _SEA_ROUTES) // 10 * 10, station_longitudes[station]),
        "station": np.where(at_sea, _SHIP, FIRST_GENERATED_STATION + station),
        "land_or_ocean": np.where(at_sea, 2, 1),
        "present_weather": np.where(random.random(count) < 0.95, random.integers(0, 100, count), -1),
        "total_cloud_cover": total,
        "lower_cloud_amount": lower,
        "lower_cloud_height": np.where(lower > 0, random.integers(0, 10, count), -1),
        "low_cloud_type": np.where(lower > 0, random.integers(1, 12, count), 0),
        "middle_cloud_type": np.where(seen, random.integers(0, 13, count), np.where(cloudy, -1, 0)),
        "high_cloud_type": np.where(seen, random.integers(0, 10, count), np.where(cloudy, -1, 0)),
        "middle_cloud_amount": middle * 100,
        "high_cloud_amount": high * 100,
        "visible_middle_cloud_amount": middle,
        "visible_high_cloud_amount": high,
        "change_code": np.where(random.random(count) < 0.88, 0, random.integers(1, 10, count)),
        "solar_altitude": altitude,
        "lunar_illuminance": illuminance,
    }


def _station_places(stations: int) -> tuple[Int64Array, Int64Array]:
    random = random_for("cloud stations", 0)
    return _crowded(random, stations, _LAND_REGIONS), random.integers(-5_500, 7_500, stations)


def _crowded(random: np.random.Generator, count: int, places: tuple[tuple[int, int, float], ...]) -> Int64Array:
    """Return longitudes from 0 to 35999 around the middles of some places."""
    middles, widths, shares = (np.array(column) for column in zip(*places, strict=True))
    place = random.choice(len(places), count, p=shares)
    return np.rint(random.normal(middles[place], widths[place])).astype(np.int64) % 36_000


def _write(characters: UInt8Array, values: Int64Array, pad: str = " ") -> None:
    """Write numbers right-justified, with a sign in front of negative ones."""
    width = characters.shape[1]
    left = np.abs(values)
    signed = values < 0
    for place in range(width - 1, -1, -1):
        written = (left > 0) | (place == width - 1)
        characters[:, place] = np.where(written, left % 10 + ord("0"), np.where(signed, ord("-"), ord(pad)))
        signed &= written
        left //= 10
