"""Customers and orders of the TPC-H benchmark, made by the package `tpchgen-cli`."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import pyarrow as pa
from pyarrow.parquet import ParquetFile

from semistream.core.arrays import Int64Array
from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.generator.settings import positive_number, whole_number
from semistream_lab.workload.repeated_keys import RepeatedKeys

CUSTOMER_KEY = "c_custkey"
ORDER_KEY = "o_custkey"

_GENERATOR = "tpchgen-cli"
_ROWS_AT_SCALE_1 = {"customer": 150_000, "orders": 1_500_000}
_BATCH_ROWS = 10_000
_ROW_GROUP = "2MB"  # small, because a reader decodes whole row groups


@dataclass(frozen=True)
class TpchFiles:
    """The two generated tables as Parquet files.

    The keys of customers are 1, 2, 3 and so on. Orders ask for them uniformly, but never for a customer whose key is a
    multiple of 3: a third of all customers has no order. There is no skew in them.
    """

    customer: Path
    orders: Path

    def customers(self, batch_rows: int = _BATCH_ROWS) -> pa.RecordBatchReader:
        """Return the customers, sorted by `c_custkey`, as rows for a master table; a batch in memory at a time."""
        return _rows(self.customer, batch_rows)

    def order_rows(self, batch_rows: int = _BATCH_ROWS) -> pa.RecordBatchReader:
        """Return the orders as a stream with the key `o_custkey`; a batch in memory at a time."""
        return _rows(self.orders, batch_rows)

    def order_keys(self) -> RepeatedKeys:
        """Return the customer keys of the orders, in the order of the file and from its beginning again at its end."""
        return RepeatedKeys(lambda: _keys(self.orders, ORDER_KEY))


def generate(folder: str | PathLike[str], scale: float) -> TpchFiles:
    """Return the customers and orders of a scale factor in `folder`, generating those that are not there yet.

    Scale 1 has 150,000 customers and 1,500,000 orders. A file gets its name when it is complete, so a generation that
    was broken off goes on with the tables that are missing. Files of different scales do not get in each other's way.
    """
    scale = positive_number("scale", scale)
    home = Path(folder) / f"tpch-{scale:g}"
    paths = {table: home / f"{table}.parquet" for table in _ROWS_AT_SCALE_1}
    missing = [table for table, path in paths.items() if not _is_complete(path, round(_ROWS_AT_SCALE_1[table] * scale))]
    if missing:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home, prefix=".generating-") as temporary:
            _run(missing, scale, Path(temporary))
            for table in missing:
                (Path(temporary) / f"{table}.parquet").replace(paths[table])
    return TpchFiles(**paths)


def _run(tables: list[str], scale: float, folder: Path) -> None:
    command = shutil.which(_GENERATOR, path=sysconfig.get_path("scripts")) or shutil.which(_GENERATOR)
    if command is None:
        raise SemistreamError(
            "TPC-H tables are made by the package tpchgen-cli: install it with `pip install 'semistream[tpch]'`."
        )
    options = ["--scale-factor", f"{scale:g}", "--tables", ",".join(tables), "--row-group-bytes", _ROW_GROUP]
    done = subprocess.run(
        [command, "parquet", *options, "--output-dir", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise SemistreamError(f"tpchgen-cli could not make the tables: {reason}.")


def _is_complete(path: Path, row_count: int) -> bool:
    if not path.exists():
        return False
    try:
        with ParquetFile(path) as file:
            rows = file.metadata.num_rows
    except (pa.ArrowException, OSError):
        rows = -1
    if rows != row_count:
        raise InvalidSettingError(
            f"{path} is not a complete TPC-H table of this scale: remove it, and it is made again."
        )
    return True


def _rows(path: Path, batch_rows: int) -> pa.RecordBatchReader:
    batch_rows = whole_number("batch_rows", batch_rows, minimum=1)
    with ParquetFile(path) as file:
        # The files have views of strings, which neither joins nor Spark take.
        schema = pa.schema(
            [
                pa.field(field.name, pa.string() if pa.types.is_string_view(field.type) else field.type, field.nullable)
                for field in file.schema_arrow
            ]
        )
    return pa.RecordBatchReader.from_batches(schema, _batches(path, schema, batch_rows))


def _batches(path: Path, schema: pa.Schema, batch_rows: int) -> Iterator[pa.RecordBatch]:
    with ParquetFile(path, pre_buffer=False) as file:
        for batch in file.iter_batches(batch_rows, use_threads=False):
            yield batch.cast(schema)


def _keys(path: Path, column: str) -> Iterator[Int64Array]:
    with ParquetFile(path, pre_buffer=False) as file:
        for batch in file.iter_batches(1 << 16, columns=[column], use_threads=False):
            yield batch.column(0).to_numpy()
