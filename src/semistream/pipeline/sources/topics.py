"""Topics of Kafka: messages whose values are JSON, Avro, text or bytes."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so

from semistream.core.errors import InvalidSettingError
from semistream.pipeline.description import SourceDescription, SourceTopicDescription
from semistream.pipeline.sources.contract import Letters, Source, SourceKind, loaded, sound_or_stop
from semistream.pipeline.sources.message_values import RECORD, columns_of_values, with_records
from semistream.pipeline.sources.topic_settings import TOPIC_KEYS, describe_topic
from semistream.pipeline.toml_table import TomlTable
from semistream.spark.spark_session import java_of

_SECONDS_TO_CONNECT = 5.0
_MILLISECONDS_FOR_IDS = 20_000
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""What brokers of before 2.8 tell, which give topics no ids."""
_CONSUMER = "kafka."
_SECURITY = ("kafka.security.", "kafka.sasl.", "kafka.ssl.")


class Topics(SourceKind):
    """The messages of one or several topics, each read once, in the order of its partition."""

    keys = TOPIC_KEYS
    tells_columns = False

    def describe(self, table: TomlTable, format_name: str, folder: Path) -> SourceDescription:
        """Return what the file says."""
        source = describe_topic(table, format_name, folder)
        names = [name.lower() for name in self.columns(source)]
        for name in names:
            if names.count(name) > 1:
                raise table.wrong("message", f"and the value both make a column {name!r}: give one another name")
        return source

    def identity(self, source: SourceDescription) -> dict[str, str]:
        """Return the brokers and topics: offsets mean nothing elsewhere."""
        topic = _topic(source)
        servers = ",".join(sorted(topic.servers.split(",")))
        return {"format": "kafka", "servers": servers, "topics": ",".join(sorted(topic.topics))}

    def columns(self, source: SourceDescription) -> tuple[str, ...]:
        """Return the columns of values, then those of the rest of the message."""
        topic = _topic(source)
        return (*columns_of_values(topic.value, source.schema), *topic.message.values(), *topic.headers)

    def connectors(self, source: SourceDescription) -> tuple[str, ...]:
        """Return Kafka's connector, and that of Avro if values are Avro."""
        return ("kafka", "avro") if _topic(source).value.endswith("avro") else ("kafka",)

    def check(self, source: SourceDescription) -> None:
        """Raise an error unless one of the brokers answers: Spark would wait for minutes."""
        servers = _topic(source).servers
        for server in servers.split(","):
            host, _, port = server.rpartition(":")
            with suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), _SECONDS_TO_CONNECT):
                return
        raise InvalidSettingError(
            f"{source.where} servers is {servers}, where no broker answers: start the brokers, or correct it."
        )

    def stream_ids(self, spark: SparkSession, source: SourceDescription) -> Mapping[str, str]:
        """Return the ids of topics: Spark compares offsets, which a topic that was made anew may have reached."""
        topic = _topic(source)
        if topic.skips_expired:
            return {}
        java = java_of(spark)
        settings = java.java.util.HashMap()
        for name, value in source.options.items():
            if name.startswith(_CONSUMER):
                settings.put(name.removeprefix(_CONSUMER), value)
        settings.put("bootstrap.servers", topic.servers)
        settings.put("default.api.timeout.ms", str(_MILLISECONDS_FOR_IDS))
        settings.put("request.timeout.ms", str(_MILLISECONDS_FOR_IDS))
        ids: dict[str, str] = {}
        try:
            admin = java.org.apache.kafka.clients.admin.AdminClient.create(settings)
        except (Py4JError, TypeError):
            return ids  # Spark will tell what is wrong with the settings
        try:
            described = admin.describeTopics(java.java.util.ArrayList(list(topic.topics))).topicNameValues()
            for name in topic.topics:
                with suppress(Py4JError):  # there is no such topic yet, or we may not ask about it
                    ids[name] = described.get(name).get().topicId().toString()
        finally:
            admin.close(java.java.time.Duration.ZERO)
        return {name: one for name, one in ids.items() if one != _NO_ID}

    def open(self, spark: SparkSession, source: SourceDescription) -> Source:
        """Return the stream without its poison messages."""
        topic = _topic(source)
        reader = spark.readStream.format("kafka").options(**source.options)
        reader = reader.option("kafka.bootstrap.servers", topic.servers).option("subscribe", ",".join(topic.topics))
        reader = reader.option("startingOffsets", topic.start)
        reader = reader.option("failOnDataLoss", str(not topic.skips_expired).lower())
        reader = reader.option("includeHeaders", "true")
        if topic.max_rows_per_trigger is not None:
            reader = reader.option("maxOffsetsPerTrigger", topic.max_rows_per_trigger)
        messages, reason = with_records(loaded(source, reader), source)
        letters = None
        if source.dead_letters is None and source.dead_letters_topic is None:
            sound = messages.where(sound_or_stop(reason.isNull(), _stop_sentence(source, reason)))
        else:
            sound = messages.where(reason.isNull())
            letters = Letters(_letters(messages, reason), lambda batch: None if batch.isEmpty() else batch)
        return Source(sound.select(*self._selected(source)), letters)

    def _selected(self, source: SourceDescription) -> list[Column]:
        topic = _topic(source)
        attributes = {
            "key": F.col("key").cast("string"),
            "key_bytes": F.col("key"),
            **{name: F.col(name) for name in ("timestamp", "topic", "partition", "offset", "headers")},
        }
        selected = [F.col(RECORD)[name].alias(name) for name in columns_of_values(topic.value, source.schema)]
        selected += [attributes[attribute].alias(name) for attribute, name in topic.message.items()]
        return selected + [_header(header).alias(name) for name, header in topic.headers.items()]


def letters_for_topic(letters: DataFrame, source: SourceDescription) -> tuple[DataFrame, dict[str, str]]:
    """Return dead letters as messages, and the options of the sink: the message as it was, told by more headers."""
    told = {
        "semistream.reason": F.col("reason"),
        **{f"semistream.{name}": F.col(name).cast("string") for name in ("topic", "partition", "offset")},
    }
    ours = F.array(
        *(F.struct(F.lit(name).alias("key"), text.cast("binary").alias("value")) for name, text in told.items())
    )
    headers = F.concat(F.coalesce(F.col("headers"), F.slice(ours, 1, 0)), ours)
    options = {name: value for name, value in source.options.items() if name.startswith(_SECURITY)}
    options |= {"kafka.bootstrap.servers": _topic(source).servers, "topic": source.dead_letters_topic or ""}
    return letters.select("key", "value", headers.alias("headers")), options


def _letters(messages: DataFrame, reason: Column) -> DataFrame:
    poison = messages.where(reason.isNotNull())
    return poison.select(
        *("topic", "partition", "offset", "timestamp"), reason.alias("reason"), *("key", "value", "headers")
    )


def _stop_sentence(source: SourceDescription, reason: Column) -> Column:
    return F.concat(
        F.lit("The message at offset "),
        F.col("offset").cast("string"),
        F.lit(" in partition "),
        F.col("partition").cast("string"),
        F.lit(" of the topic "),
        F.col("topic"),
        F.lit(f" does not fit {source.where.rstrip(':')} ("),
        reason,
        F.lit("): mend the producer and skip the message, or set dead_letters there to put such messages aside."),
    )


def _header(name: str) -> Column:
    """Return the text of the last header of a name, null if there is none."""
    of_name = F.filter("headers", lambda header: header["key"] == F.lit(name))
    return F.try_element_at(of_name, F.lit(-1))["value"].cast("string")


def _topic(source: SourceDescription) -> SourceTopicDescription:
    assert source.topic is not None, "a source of the format kafka has topics"
    return source.topic
