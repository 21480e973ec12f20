"""The files that users name on the command line as rows for a master table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from semistream.core.errors import InvalidSettingError

_SUFFIXES = {".parquet", ".pq", ".csv", ".arrow", ".ipc", ".feather"}
_HIDDEN = ("_", ".")


def existing_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files at these paths, those of a directory in the order of their names; all must be of one kind."""
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InvalidSettingError(f"There is no file {path}: give the path of Parquet, CSV or Arrow files.")
        inside = _files_in(path) if path.is_dir() else [path]
        if not inside:
            raise InvalidSettingError(f"The directory {path} has no Parquet, CSV or Arrow files: give one that has.")
        files.extend(inside)
    kinds = sorted({file.suffix.lower() for file in files})
    if len(kinds) > 1:
        raise InvalidSettingError(f"The files are of several kinds ({', '.join(kinds)}): give files of one kind.")
    return files


def as_in_table(paths: Sequence[Path], schema: pa.Schema) -> Any:
    """Return the files at these paths as data for a merge.

    The text of CSV files is read as the types that the table's columns have, since it has no types of its own.
    """
    files = existing_files(paths)
    if files[0].suffix.lower() != ".csv":
        return files
    from pyarrow import csv, dataset

    types = {field.name: field.type for field in schema}
    text = dataset.CsvFileFormat(convert_options=csv.ConvertOptions(column_types=types))
    try:
        return dataset.dataset([str(file) for file in files], format=text)
    except (pa.ArrowException, OSError) as error:
        raise InvalidSettingError(f"{files[0]} cannot be read as CSV with the types of the table: {error}") from None


def columns_of(paths: Sequence[Path], names: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
    """Return some columns of all rows in the files at these paths; those of CSV files are read as the types given."""
    from pyarrow import csv, dataset

    files = existing_files(paths)
    kinds = {".parquet": "parquet", ".pq": "parquet"}
    kind: Any = kinds.get(files[0].suffix.lower(), "ipc")
    if files[0].suffix.lower() == ".csv":
        kind = dataset.CsvFileFormat(convert_options=csv.ConvertOptions(column_types=dict(types)))
    try:
        rows = dataset.dataset([str(file) for file in files], format=kind)
        missing = [name for name in names if name not in rows.schema.names]
        if missing:
            raise InvalidSettingError(
                f"{files[0]} has no column {', '.join(missing)}: its columns are {', '.join(rows.schema.names)}."
            )
        return rows.to_table(columns=list(names))
    except (pa.ArrowException, OSError) as error:
        raise InvalidSettingError(f"{files[0]} cannot be read: {error}") from None


def _files_in(directory: Path) -> list[Path]:
    return [
        path
        for path in sorted(directory.rglob("*"))
        if path.is_file()
        and path.suffix.lower() in _SUFFIXES
        and not any(part.startswith(_HIDDEN) for part in path.relative_to(directory).parts)
    ]
