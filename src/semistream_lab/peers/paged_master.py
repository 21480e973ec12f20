"""The master table as semistream has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from semistream.master_table import MasterTable
from semistream_lab.peers.data import PeerData

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def paged_master(data: PeerData, spark: SparkSession | None = None) -> Path:
    """Build the master table in pages unless it is there, by Spark if there is a session, and return its folder."""

    def build(folder: Path) -> None:
        parquet = data.build_parquet()
        rows = parquet if spark is None else spark.read.parquet(str(parquet))
        MasterTable.build(rows, folder, "key", page_bytes=page_bytes)

    page_bytes = data.situation.page_bytes
    name = "paged" if spark is None else "paged-by-spark"
    return data.built(name if page_bytes is None else f"{name}-in-{page_bytes}", build)
