"""Opens whatever rows users have as a stream of Arrow record batches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from semistream.core.errors import InvalidSettingError, SchemaDriftError
from semistream.core.local_paths import local_path_of

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
}

_BATCH_ROWS = 16_384


@dataclass(frozen=True)
class Source:
    """Rows that can be read once, in order."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    row_count: int | None


def open_source(data: Any) -> Source:
    """Return the rows of a table, a reader, batches, a dataset, anything with an Arrow stream, or paths of files."""
    if isinstance(data, Source):
        return data
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return Source(data.schema, iter(data.to_batches()), data.num_rows)
    if isinstance(data, pa.RecordBatchReader):
        return Source(data.schema, iter(data), None)
    if isinstance(data, (str, os.PathLike)):
        return _from_paths([local_path_of(data, "Files")])
    if isinstance(data, (list, tuple)) and data and all(isinstance(part, (str, os.PathLike)) for part in data):
        return _from_paths([local_path_of(part, "Files") for part in data])
    if hasattr(data, "scanner") and hasattr(data, "count_rows"):
        return _from_dataset(data, data.count_rows())
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return Source(reader.schema, iter(reader), None)
    if isinstance(data, Iterable):
        return _from_batches(data)
    raise InvalidSettingError(
        f"An object of type {type(data).__name__} is not data for a master table: give an Arrow table, a reader, "
        f"record batches, "
        f"or the path of Parquet, CSV or Arrow files."
    )


def _from_batches(data: Iterable[Any]) -> Source:
    batches = iter(data)
    first = next(batches, None)
    if not isinstance(first, pa.RecordBatch):
        raise InvalidSettingError(
            "An iterable must give at least one Arrow record batch, so that the columns are known: "
            "give an empty Arrow table for no rows."
        )
    return Source(first.schema, _of_one_schema(chain([first], batches), first.schema), None)


def _of_one_schema(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if not batch.schema.equals(schema):
            raise SchemaDriftError(
                f"A record batch has the columns {_described(batch.schema)}, but the first one has "
                f"{_described(schema)}: give batches of one schema."
            )
        yield batch


def _from_paths(paths: list[Path]) -> Source:
    from pyarrow import dataset

    for path in paths:
        if not path.exists():
            raise InvalidSettingError(f"There is no file {path}: give the path of Parquet, CSV or Arrow files.")
    kind = _format(paths[0])
    try:
        files = dataset.dataset([str(path) for path in paths] if len(paths) > 1 else str(paths[0]), format=kind)
        row_count = None if kind == "csv" else files.count_rows()
    except (pa.ArrowException, OSError) as error:
        raise InvalidSettingError(f"{paths[0]} cannot be read as {kind}: {error}") from None
    if kind == "csv" and files.schema.names and all(pa.types.is_null(field.type) for field in files.schema):
        raise InvalidSettingError(
            f"{paths[0]} has a header but no rows, so its columns have no types: give a file with rows, or an "
            f"empty Arrow table with a schema."
        )
    if kind == "parquet":
        return Source(files.schema, _readable(_from_parquet(files.files, files.schema)), row_count)
    return _from_dataset(files, row_count)


def _from_parquet(paths: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    # The scanner of a dataset decodes whole row groups, this one a batch at a time: a fifth of the memory.
    from pyarrow.parquet import ParquetFile

    for path in paths:
        with ParquetFile(path, pre_buffer=False, buffer_size=1 << 16) as file:
            known = [name for name in schema.names if name in file.schema_arrow.names]
            batches = file.iter_batches(_BATCH_ROWS, use_threads=False)
            yield from _of_one_schema((batch.select(known) for batch in batches), schema)


def _from_dataset(files: Any, row_count: int | None) -> Source:
    # Little is read ahead, because what is waiting counts against the memory of the build.
    scanner = files.scanner(batch_size=_BATCH_ROWS, batch_readahead=1, fragment_readahead=1, use_threads=False)
    return Source(files.schema, _readable(scanner.to_batches()), row_count)


def _readable(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches
    except (pa.ArrowException, OSError) as error:
        raise InvalidSettingError(f"The data cannot be read to its end: {error}") from None


def _format(path: Path) -> str:
    if path.is_dir():
        inside = sorted(file for file in path.rglob("*") if file.suffix in _FORMATS)
        return _FORMATS[inside[0].suffix] if inside else "parquet"
    try:
        return _FORMATS[path.suffix.lower()]
    except KeyError:
        raise InvalidSettingError(
            f"{path} is not of a known kind: give files that end in {', '.join(_FORMATS)}."
        ) from None


def _described(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
