"""Python workers of Spark for each run that is measured."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARK = "SEMISTREAM_PEER"
"""The variable in whose value a process says to which run it belongs."""


@contextmanager
def own_workers(spark: SparkSession, name: str) -> Iterator[str]:
    """Let operators that are planned in the block have Python workers of their own, and return their mark.

    Spark shares workers between all queries with the same environment. A variable in it keeps the caches of one run
    out of the processes of another, and tells whose process one is.
    """
    environment = spark.sparkContext.environment
    mark = f"{name}-{os.getpid()}"
    environment[MARK] = mark
    try:
        yield mark
    finally:
        del environment[MARK]
