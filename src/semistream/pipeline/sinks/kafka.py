"""A topic of Kafka: at least once, with an id that is the same when a message is sent again."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so
from pyspark.sql.types import BinaryType, TimestampType

from semistream.core.errors import NameClashError
from semistream.pipeline import jars
from semistream.pipeline.description import SinkTopicDescription
from semistream.pipeline.sinks.contract import Batch, BatchSink, Guarantee, spelled_columns
from semistream.pipeline.transformations import quoted
from semistream.spark.column_names import ColumnNames

_TEXT = "_semistream_text"
_COPY = "_semistream_copy"
_JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_ID_DIGITS = 32


class Topic(BatchSink):
    """Messages with the rows as JSON or Avro.

    Kafka's transactions end with the producer, and Spark's writer has none: a batch that is repeated is sent again. The
    id of a message is a digest of query, batch, content and, for equal rows of a batch, their number, so that a repeat
    has the same id and no two other messages share one.
    """

    guarantee = Guarantee.AT_LEAST_ONCE

    @property
    def place(self) -> str:
        """The topic, and what tells repeats from other messages."""
        return f"topic {self._topic.name} (repeats have the same {self._topic.id})"

    def check(self, rows: DataFrame) -> None:
        """Raise an error unless the columns of key and headers are there and the id is not."""
        topic = self._topic
        formats = {"kafka", "avro"} if topic.value == "avro" else {"kafka"}
        jars.check_jars(rows.sparkSession, formats)
        spelled_columns(rows, self.settings.key, "key")
        spelled_columns(rows, list(topic.headers.values()), "headers")
        if ColumnNames.of(rows.sparkSession).spelled(topic.id, rows.columns) in rows.columns:
            raise NameClashError(
                f"[sink] id would make the column {topic.id!r}, which the rows have already: give another name by id."
            )

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Send the rows of a batch."""
        topic = self._topic
        messages = self._messages(rows, batch)
        writer = messages.write.format("kafka").options(**self.settings.options)
        writer.option("kafka.bootstrap.servers", topic.servers).option("topic", topic.name).save()

    @property
    def _topic(self) -> SinkTopicDescription:
        assert self.settings.topic is not None
        return self.settings.topic

    def _messages(self, rows: DataFrame, batch: Batch) -> DataFrame:
        topic = self._topic
        columns = [F.col(quoted(name)) for name in rows.columns]
        texts = rows.withColumn(_TEXT, F.to_json(F.struct(*columns), _JSON))
        # Equal rows are told apart by counting them, in whatever order they come.
        copies = Window.partitionBy(_TEXT).orderBy(F.lit(1))
        counted = texts.withColumn(_COPY, F.row_number().over(copies))
        name = F.concat_ws("/", F.lit(batch.query), F.lit(batch.number), F.col(_COPY), F.col(_TEXT))
        identified = counted.withColumn(topic.id, F.substring(F.sha2(name, 256), 1, _ID_DIGITS))
        value = F.struct(F.col(topic.id), *columns)
        parts = [self._value(value).alias("value"), *self._key(rows)]
        if topic.headers:
            parts.append(F.array(*(self._header(rows, *header) for header in topic.headers.items())).alias("headers"))
        return identified.select(*parts)

    def _value(self, value: Column) -> Column:
        if self._topic.value == "json":
            return F.to_json(value, _JSON)
        from pyspark.sql.avro.functions import to_avro

        return to_avro(value, self._topic.schema or "")

    def _key(self, rows: DataFrame) -> list[Column]:
        names = spelled_columns(rows, self.settings.key, "key")
        if not names:
            return []
        if len(names) == 1:
            return [_bytes(rows, names[0]).alias("key")]
        return [F.to_json(F.struct(*(F.col(quoted(name)) for name in names)), _JSON).alias("key")]

    def _header(self, rows: DataFrame, name: str, column: str) -> Column:
        (known,) = spelled_columns(rows, (column,), "headers")
        return F.struct(F.lit(name).alias("key"), _bytes(rows, known).alias("value"))


def _bytes(rows: DataFrame, name: str) -> Column:
    """Return a column as a key or header has it: bytes as they are, else a text, of moments the one of values."""
    column = F.col(quoted(name))
    match rows.schema[name].dataType:
        case BinaryType():
            return column
        case TimestampType():
            # A cast would write the time of the session's zone.
            return F.get_json_object(F.to_json(F.struct(column.alias("at")), _JSON), "$.at").cast("binary")
        case _:
            return column.cast("string").cast("binary")
