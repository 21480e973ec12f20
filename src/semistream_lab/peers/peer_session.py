"""The Spark session in which peers are measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from semistream.spark.spark_session import make_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.driver.memory": "6g",  # the peer that caches the master table holds it there
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}


@contextmanager
def peers_session(cores: int, memory: int | str, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Return a session with the settings of semistream, which suit all peers, and Spark's own checkpoint manager."""
    spark = make_session("peers", f"local[{cores}]", {**_SETTINGS, **(settings or {})}, memory=memory)
    try:
        yield spark
    finally:
        spark.stop()
