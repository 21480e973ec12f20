"""Decides whether rows are shuffled before they are enriched, so that one task reads a page for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegralType

from semistream.core.errors import InvalidSettingError
from semistream.store.contract import MasterStore

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Partitioning: TypeAlias = str | int
"""How rows are spread over tasks: "auto", "none" or a number of partitions."""
_SHUFFLE_SECONDS = 0.1
"""What a shuffle costs a micro-batch, at the upper end of what was measured."""
_READ_SECONDS = 10e-6
"""What it costs to read a page and take its rows."""


def partitioned(df: DataFrame, keys: list[str], store: MasterStore, partitioning: Partitioning) -> DataFrame:
    """Return the DataFrame, shuffled by the pages of the master table if that is wanted.

    A stream is shuffled only for a number that is given: a micro-batch reads few pages, and the shuffle would cost it
    more than the reads that it saves. A batch reads all pages in every task, so "auto" shuffles it where the table
    has many.
    """
    if partitioning == "none":
        return df
    if partitioning == "auto":
        tasks = parallelism(df)
        if df.isStreaming or not is_worth_a_shuffle(store.page_count, tasks):
            return df
        return df.repartition(tasks, *_pages(df, keys, store))
    if isinstance(partitioning, bool) or not isinstance(partitioning, int) or partitioning < 1:
        raise InvalidSettingError(
            f"{partitioning!r} is not a valid partitioning: choose 'auto', 'none' or a positive number."
        )
    return df.repartition(partitioning, *_pages(df, keys, store))


def is_worth_a_shuffle(page_count: int, tasks: int) -> bool:
    """Say whether reading each page in one task instead of in all of them saves more time than a shuffle costs."""
    return page_count * (1 - 1 / max(1, tasks)) * _READ_SECONDS > _SHUFFLE_SECONDS


def _pages(df: DataFrame, keys: list[str], store: MasterStore) -> list[Column]:
    """Return expressions that are equal for rows of one page: about for integers, whose pages are ranges."""
    first_codes = store.first_codes
    if len(keys) > 1 or not isinstance(df.schema[keys[0]].dataType, IntegralType) or first_codes is None:
        return [F.col(key) for key in keys]
    if len(first_codes) < 2:
        return [F.lit(0)]
    span = max(1, (int(first_codes[-1]) - int(first_codes[0])) // (len(first_codes) - 1))
    return [F.floor(F.col(keys[0]).cast("double") / F.lit(float(span)))]


def parallelism(df: DataFrame) -> int:
    """Return how many tasks of the DataFrame run side by side."""
    session = df.sparkSession
    try:
        return int(session.sparkContext.defaultParallelism)
    except Exception:  # Connect has no SparkContext
        return int(session.conf.get("spark.sql.shuffle.partitions") or 200)
