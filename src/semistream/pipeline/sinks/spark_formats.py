"""Whether Spark knows a format and can write streams in it, which it would say only when the query starts."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from semistream.core.errors import InvalidSettingError
from semistream.pipeline.description import FILE_FORMATS
from semistream.spark.spark_session import java_of

_OF_THE_WRITER = "memory"
"""A name that only Spark's writer of streams knows."""
_STREAM_SINK = "org.apache.spark.sql.sources.StreamSinkProvider"
_FILE_FORMAT = "org.apache.spark.sql.execution.datasources.FileFormat"
_TABLE_PROVIDER = "org.apache.spark.sql.connector.catalog.TableProvider"


def check_streaming_format(spark: SparkSession, name: str) -> None:
    """Raise InvalidSettingError if Spark does not know the format, or can only read or write it as a whole."""
    if name in FILE_FORMATS or name == _OF_THE_WRITER:
        return
    source = java_of(spark).org.apache.spark.sql.execution.datasources.DataSource
    try:
        found = source.lookupDataSource(name, spark._jsparkSession.sessionState().conf())
    except (PySparkException, Py4JJavaError):
        raise InvalidSettingError(
            f"[sink] format is {name!r}, which Spark does not know: check the name, or name its jars by "
            f'"spark.jars.packages" in [spark].'
        ) from None
    kinds = _interfaces(found)
    # What kinds of writes a table of version 2 takes is known only when the query starts: Spark then says so itself.
    if not {_STREAM_SINK, _FILE_FORMAT, _TABLE_PROVIDER} & kinds:
        raise InvalidSettingError(
            f"[sink] format is {name!r}, which Spark cannot write streams in: choose another format, such as parquet, "
            f"delta or kafka."
        )


def _interfaces(java_class: object) -> set[str]:
    """Return the names of all interfaces of a class of Java."""
    names: set[str] = set()
    waiting = [java_class]
    while waiting:
        each = waiting.pop()
        if each is None:
            continue
        for interface in each.getInterfaces():  # type: ignore[attr-defined]
            if interface.getName() not in names:
                names.add(interface.getName())
                waiting.append(interface)
        waiting.append(each.getSuperclass())  # type: ignore[attr-defined]
    return names
