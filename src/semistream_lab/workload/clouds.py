"""Cloud reports of ships and land stations in the format of the archive NDP-026B."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int64Array, UInt8Array
from semistream.core.errors import CorruptTableError, InvalidSettingError
from semistream.generator.settings import whole_number
from semistream_lab.workload.repeated_keys import RepeatedKeys

LONGITUDE = "longitude"
RECORD_CHARACTERS = 56
_EXTENDED_CHARACTERS = 80
"""NDP-026C: the same 56 characters and others behind them."""
_BATCH_ROWS = 1 << 16
_FIRST_YEAR = 1951
_SPACE, _MINUS, _ZERO, _NEWLINE = b" -0\n"


@dataclass(frozen=True)
class ReportField:
    """A number in a report: where it stands, and which value means that it is missing."""

    name: str
    start: int
    width: int
    missing: int | None = None


REPORT_FIELDS = (
    ReportField("is_light", 8, 1),  # IB: 1 if there was light enough to see clouds
    ReportField("latitude", 9, 5),  # LAT, hundredths of a degree
    ReportField(LONGITUDE, 14, 5),  # LON, hundredths of a degree, eastward from 0 to 36000
    ReportField("station", 19, 5),  # ID: land station, or source and type of a ship
    ReportField("land_or_ocean", 24, 1),  # LO: 1 land, 2 ocean
    ReportField("present_weather", 25, 2, missing=-1),  # ww
    ReportField("total_cloud_cover", 27, 1),  # N, eighths
    ReportField("lower_cloud_amount", 28, 2, missing=-1),  # Nh, eighths
    ReportField("lower_cloud_height", 30, 2, missing=-1),  # h, a code
    ReportField("low_cloud_type", 32, 2, missing=-1),  # CL
    ReportField("middle_cloud_type", 34, 2, missing=-1),  # CM
    ReportField("high_cloud_type", 36, 2, missing=-1),  # CH
    ReportField("middle_cloud_amount", 38, 3, missing=900),  # AM, hundredths of an eighth
    ReportField("high_cloud_amount", 41, 3, missing=900),  # AH, hundredths of an eighth
    ReportField("visible_middle_cloud_amount", 44, 1, missing=9),  # UM, eighths
    ReportField("visible_high_cloud_amount", 45, 1, missing=9),  # UH, eighths
    ReportField("change_code", 46, 2),  # IC: how the report was edited
    ReportField("solar_altitude", 48, 4),  # SA, tenths of a degree
    ReportField("lunar_illuminance", 52, 4),  # RI, hundredths
)
"""All numbers of a report but the date, which is its first eight characters: two each for year, month, day, hour."""

REPORTS_SCHEMA = pa.schema(
    [
        pa.field("observed", pa.timestamp("s", tz="UTC"), nullable=False),
        *(pa.field(field.name, pa.int32(), nullable=field.missing is not None) for field in REPORT_FIELDS),
    ]
)


def reports(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]], batch_rows: int = _BATCH_ROWS
) -> pa.RecordBatchReader:
    """Return the reports in files, one after the other; a batch in memory at a time.

    A line is a report of 56 characters, or of 80 as in NDP-026C, of which the first 56 are read. Many reports share a
    longitude, so a master table of them is built with `key="longitude", on_duplicate="all"`.
    """
    batch_rows = whole_number("batch_rows", batch_rows, minimum=1)
    files = [Path(path) for path in ([paths] if isinstance(paths, str | PathLike) else paths)]
    for file in files:
        if not file.is_file():
            raise InvalidSettingError(f"There is no file {file}: give the paths of files with cloud reports.")
    return pa.RecordBatchReader.from_batches(
        REPORTS_SCHEMA, (_batch(lines, file, first) for file in files for first, lines in _lines(file, batch_rows))
    )


def longitude_keys(paths: str | PathLike[str] | Sequence[str | PathLike[str]]) -> RepeatedKeys:
    """Return the longitudes of the reports in files, in their order and from the beginning again at the end."""
    reports(paths)  # an error about the paths is told at once
    return RepeatedKeys(lambda: _longitudes(reports(paths)))


def _longitudes(batches: pa.RecordBatchReader) -> Iterator[Int64Array]:
    for batch in batches:
        yield batch.column(LONGITUDE).to_numpy().astype(np.int64)


def _lines(path: Path, batch_rows: int) -> Iterator[tuple[int, UInt8Array]]:
    """Yield the number of a first line, from 1 on, and some lines as a matrix of their characters."""
    with path.open("rb") as file:
        width = _line_bytes(path, file)
        number = 1
        while content := file.read(batch_rows * width):
            if len(content) % width and not content.endswith(b"\n"):
                content += b"\r\n" if content[width - 2 : width] == b"\r\n" else b"\n"  # the last line may lack its end
            count = len(content) // width
            lines = np.frombuffer(content, dtype=np.uint8, count=count * width).reshape(count, width)
            unended = np.flatnonzero(lines[:, -1] != _NEWLINE)
            if len(unended) or len(content) % width:
                raise _no_report(path, number + (int(unended[0]) if len(unended) else count))
            yield number, lines
            number += len(lines)


def _line_bytes(path: Path, file: BinaryIO) -> int:
    line = file.readline(_EXTENDED_CHARACTERS + 2)
    file.seek(0)
    if line and len(line.rstrip(b"\r\n")) not in (RECORD_CHARACTERS, _EXTENDED_CHARACTERS):
        raise _no_report(path, 1)
    return len(line) if line.endswith(b"\n") or not line else len(line) + 1


def _batch(lines: UInt8Array, path: Path, first_line: int) -> pa.RecordBatch:
    numbers: dict[str, Int64Array] = {}
    observed, wrong = _moments(lines[:, :8])
    for field in REPORT_FIELDS:
        numbers[field.name], bad = _numbers(lines[:, field.start : field.start + field.width])
        wrong |= bad
    wrong |= (numbers[LONGITUDE] < 0) | (numbers[LONGITUDE] > 36_000)
    if wrong.any():
        raise _no_report(path, first_line + int(wrong.argmax()))
    columns = [pa.array(observed).cast(REPORTS_SCHEMA.field(0).type)]
    for field in REPORT_FIELDS:
        mask = None if field.missing is None else numbers[field.name] == field.missing
        columns.append(pa.array(numbers[field.name].astype(np.int32), mask=mask))
    return pa.RecordBatch.from_arrays(columns, schema=REPORTS_SCHEMA)


def _numbers(characters: UInt8Array) -> tuple[Int64Array, BoolArray]:
    """Return the number in each row of characters, and where there is none: blanks, a sign and digits are allowed."""
    values = np.zeros(len(characters), dtype=np.int64)
    minus, digits, wrong = (np.zeros(len(characters), dtype=np.bool_) for _ in range(3))
    for column in characters.T:
        is_digit = (column >= _ZERO) & (column < _ZERO + 10)
        is_minus = column == _MINUS
        wrong |= ~(is_digit | is_minus | (column == _SPACE)) | (~is_digit & (digits | minus))
        digits |= is_digit
        minus |= is_minus
        values = np.where(is_digit, values * 10 + column - _ZERO, values)
    return np.where(minus, -values, values), wrong | ~digits


def _moments(characters: UInt8Array) -> tuple[Int64Array, BoolArray]:
    """Return the seconds since 1970 of each row of characters, and where they are no moment."""
    (years, wrong), (months, bad), (days, worse), (hours, worst) = (
        _numbers(characters[:, start : start + 2]) for start in (0, 2, 4, 6)
    )
    wrong |= bad | worse | worst | (months < 1) | (months > 12) | (days < 1) | (hours < 0) | (hours > 23)
    years = (years - _FIRST_YEAR) % 100 + _FIRST_YEAR
    whole_months = ((years - 1970) * 12 + np.where(wrong, 1, months) - 1).astype("datetime64[M]")
    dates = whole_months.astype("datetime64[D]") + (days - 1)
    wrong |= dates.astype("datetime64[M]") != whole_months  # a day that the month does not have
    return dates.astype(np.int64) * 86_400 + hours * 3600, wrong


def _no_report(path: Path, line: int) -> CorruptTableError:
    return CorruptTableError(
        f"Line {line} of {path} is not a cloud report of NDP-026B: give a file with reports of 56 characters a line."
    )
