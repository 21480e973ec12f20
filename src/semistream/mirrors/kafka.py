"""A topic of Kafka as a source: the last message of a key is its row, and a tombstone deletes it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.mirrors.source_description import Circumstances, MirrorSource, Position, SourceRows, names_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("json", "debezium")
_SECRET = re.compile(r"(?i)passw|secret|jaas|token|credential")
_COMMITTED = {"isolation.level": "read_committed"}


@dataclass(frozen=True, init=False)
class KafkaSource(MirrorSource):
    """A topic whose messages are upserts and tombstones, which Spark reads; its Kafka connector must be there.

    Messages of a key must be in one partition, as they are unless partitions were added.

    Args:
        servers: Where the brokers are, such as "host:9092,other:9092".
        topic: The topic, from whose beginning on all keys can be had: compacted, or never shortened.
        schema: The columns, as in CREATE TABLE: "product_id BIGINT, price DOUBLE".
        format: "json": the value is an object with the columns, and a message without a value deletes its key.
            "debezium": the value is Debezium's envelope, with or without its schema.
        columns: The columns to mirror; by default all of `schema`.
        options: Settings of the consumer such as {"security.protocol": "SSL"}. A secret is {"env": "NAME"}, which takes
            it from the environment where it is used.
    """

    kind = "kafka"
    needs_spark = True
    tells_changes = True
    servers: str
    topic: str
    schema: str
    format: str
    columns: tuple[str, ...] | None
    options: tuple[tuple[str, Any], ...]

    def __init__(
        self,
        servers: str,
        topic: str,
        schema: str,
        format: str = "json",  # noqa: A002 - what Spark calls it
        columns: Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if format not in FORMATS:
            raise InvalidSettingError(f"The format of a topic is {format!r}: choose one of {', '.join(FORMATS)}.")
        for name, value in (options or {}).items():
            if _SECRET.search(name) and not isinstance(value, Mapping):
                raise InvalidSettingError(
                    f'The option {name} is a secret: set an environment variable, and give {{"env": "NAME"}} here.'
                )
        given: dict[str, Any] = {
            "servers": servers,
            "topic": topic,
            "schema": schema,
            "format": format,
            "columns": names_of(columns),
        }
        given["options"] = tuple((options or {}).items())
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def described(self) -> dict[str, Any]:
        """Return the arguments; of secrets only where they are."""
        described: dict[str, Any] = {name: getattr(self, name) for name in ("servers", "topic", "schema", "format")}
        if self.columns is not None:
            described["columns"] = list(self.columns)
        return {**described, "options": dict(self.options)} if self.options else described

    @classmethod
    def of_address(cls, address: str) -> KafkaSource:
        """Return the topic of kafka://host:port/topic?schema=…&format=…."""
        from urllib.parse import parse_qsl, unquote, urlsplit

        parts = urlsplit(address)
        settings = dict(parse_qsl(parts.query))
        if "schema" not in settings or not parts.path.strip("/"):
            raise InvalidSettingError("Write a topic like kafka://host:9092/topic?schema=id BIGINT, name STRING.")
        return cls.of_description({"servers": parts.netloc, "topic": unquote(parts.path.strip("/")), **settings})

    @contextmanager
    def all_rows(self, circumstances: Circumstances) -> Iterator[SourceRows]:
        """Read the topic from its beginning."""
        ends = self._offsets(circumstances)
        rows = self._last_messages({partition: first for partition, (first, _) in ends.items()}, ends, circumstances)
        upserts = self._upserts(rows)
        yield SourceRows(upserts, self._arrow(upserts, circumstances), _position(ends))

    @contextmanager
    def rows_since(self, position: Position, circumstances: Circumstances) -> Iterator[SourceRows | None]:
        """Read what came after the offsets of the position."""
        ends = self._offsets(circumstances)
        if _position(ends) == position:
            yield None
            return
        begins = {partition: position["offsets"].get(str(partition), first) for partition, (first, _) in ends.items()}
        for partition, (first, end) in ends.items():
            if not first <= begins[partition] <= end:
                raise SemistreamError(
                    f"The topic {self.topic} has offsets {first} to {end} in partition {partition}, but the mirror "
                    f"stopped at {begins[partition]}: messages are gone, so build the mirror again."
                )
        rows = self._last_messages(begins, ends, circumstances)
        upserts, deletes = self._upserts(rows), rows.where("is_delete").select("key.*")
        schema = self._arrow(upserts, circumstances)
        yield SourceRows(upserts, schema, _position(ends), whole=False, deletes=deletes)

    def _arrow(self, frame: DataFrame, circumstances: Circumstances) -> Any:
        from semistream.spark.master_types import arrow_schema

        return arrow_schema(frame.schema, circumstances.key)

    def _upserts(self, rows: DataFrame) -> DataFrame:
        columns = "row.*" if self.columns is None else [f"row.{_quoted(name)}" for name in self.columns]
        frame = rows.where("NOT is_delete")
        return frame.select(columns) if isinstance(columns, str) else frame.select(*columns)

    def _settings(self) -> dict[str, str]:
        settings = {"bootstrap.servers": self.servers, **_COMMITTED}
        for name, value in self.options:
            if isinstance(value, Mapping):
                secret = os.environ.get(str(value.get("env")))
                if not secret:
                    raise InvalidSettingError(
                        f"The option {name} needs the environment variable {value.get('env')}: set it."
                    )
                settings[name] = secret
            else:
                settings[name] = str(value)
        return settings

    def _offsets(self, circumstances: Circumstances) -> dict[int, tuple[int, int]]:
        """Return for each partition the first offset that is there and the one after the last."""
        from py4j.protocol import Py4JError

        spark = circumstances.spark
        assert spark is not None
        java: Any = spark._jvm
        settings = java.java.util.Properties()
        kinds = {f"{side}.deserializer": _BYTES for side in ("key", "value")}
        for name, value in {"default.api.timeout.ms": "15000", **self._settings(), **kinds}.items():
            settings.setProperty(name, value)
        try:
            consumer = java.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
            try:
                found = consumer.partitionsFor(self.topic)
                partitions = java.java.util.ArrayList()
                for one in found:
                    partitions.add(java.org.apache.kafka.common.TopicPartition(self.topic, one.partition()))
                firsts, ends = consumer.beginningOffsets(partitions), consumer.endOffsets(partitions)
                return {one.partition(): (firsts.get(one), ends.get(one)) for one in partitions}
            finally:
                consumer.close()
        except (Py4JError, TypeError) as error:
            # What Java says may repeat settings, so that only the kind of the error is told.
            kind = getattr(getattr(error, "java_exception", None), "getClass", lambda: None)()
            name = kind.getSimpleName() if kind is not None else type(error).__name__
            raise SemistreamError(
                f"The topic {self.topic} at {self.servers} cannot be read ({name}): check the brokers and the topic, "
                f"and that the session has Spark's Kafka connector."
            ) from None

    def _last_messages(
        self, begins: Mapping[int, int], ends: Mapping[int, tuple[int, int]], circumstances: Circumstances
    ) -> DataFrame:
        """Return the last message of each key: its key, its row, and whether it deletes."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so

        spark = circumstances.spark
        assert spark is not None
        reader = spark.read.format("kafka").option("subscribe", self.topic)
        for name, value in self._settings().items():
            reader = reader.option(f"kafka.{name}", value)
        starts = {self.topic: {str(partition): begin for partition, begin in begins.items()}}
        lasts = {self.topic: {str(partition): end for partition, (_, end) in ends.items()}}
        reader = reader.option("startingOffsets", json.dumps(starts)).option("endingOffsets", json.dumps(lasts))
        texts = reader.load().selectExpr(
            "CAST(key AS STRING) AS k", "CAST(value AS STRING) AS v", "partition", "offset"
        )
        messages = texts.selectExpr("*", *self._parsed(spark, circumstances.key))
        messages = messages.where("is_delete IS NOT NULL")
        last = Window.partitionBy("key").orderBy(F.col("offset").desc(), F.col("partition").desc())
        return messages.withColumn("number", F.row_number().over(last)).where("number = 1")

    def _parsed(self, spark: SparkSession, key: tuple[str, ...]) -> list[str]:
        """Return the SQL of `row`, `is_delete` and `key`; texts of users are only in the schema, as a literal."""
        from pyspark.errors import PySparkException

        try:
            fields = {
                field.name: field.dataType.simpleString() for field in spark.createDataFrame([], self.schema).schema
            }
        except PySparkException:
            raise InvalidSettingError(
                f"{self.schema!r} is not a schema: write columns as in CREATE TABLE, such as 'id BIGINT, name STRING'."
            ) from None
        for name in key:
            if name not in fields:
                raise InvalidSettingError(
                    f"The schema of the topic has no column {name!r}: name the key columns in it."
                )
        whole, keys = _literal(self.schema), _literal(", ".join(f"{_quoted(name)} {fields[name]}" for name in key))
        if self.format == "json":
            row, before, is_delete = "v", "NULL", "v IS NULL"
        else:
            op = "COALESCE(get_json_object(v, '$.payload.op'), get_json_object(v, '$.op'))"
            row = "COALESCE(get_json_object(v, '$.payload.after'), get_json_object(v, '$.after'))"
            before = "COALESCE(get_json_object(v, '$.payload.before'), get_json_object(v, '$.before'))"
            problem = "raise_error('A message of Debezium truncates the table: build the mirror again.')"
            is_delete = f"""CASE WHEN v IS NULL OR {op} = 'd' THEN TRUE WHEN {op} IN ('c', 'r', 'u') THEN FALSE
                WHEN {op} = 't' THEN CAST({problem} AS BOOLEAN) ELSE NULL END"""
        in_key = f"COALESCE(from_json(get_json_object(k, '$.payload'), {keys}), from_json(k, {keys}))"
        parts = []
        for name in key:
            part = f"COALESCE(from_json({row}, {keys}).{_quoted(name)}, from_json({before}, {keys}).{_quoted(name)}, "
            part += f"({in_key}).{_quoted(name)}"
            # A key of one column may stand there alone.
            part += f", TRY_CAST(k AS {fields[name]}))" if len(key) == 1 else ")"
            parts.append(f"{_literal(name)}, {part}")
        return [
            f"from_json({row}, {whole}) AS row",
            f"{is_delete} AS is_delete",
            f"named_struct({', '.join(parts)}) AS key",
        ]


_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"


def _position(ends: Mapping[int, tuple[int, int]]) -> dict[str, Any]:
    return {"offsets": {str(partition): end for partition, (_, end) in sorted(ends.items())}}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
