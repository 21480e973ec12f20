"""Tells the DataFrames of Spark from other data, without loading Spark."""

from __future__ import annotations

from typing import Any


def is_spark_frame(data: Any) -> bool:
    """Say whether these are rows of Spark, classic or Connect."""
    # Told by its module, because Spark need not be loaded for it: whoever has a DataFrame has loaded it already.
    return type(data).__module__.startswith("pyspark.") and hasattr(data, "mapInArrow")
