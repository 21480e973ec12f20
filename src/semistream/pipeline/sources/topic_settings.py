"""Reads what a table [source] with the format kafka says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from semistream.pipeline import places, secrets
from semistream.pipeline.description import SourceDescription, SourceTopicDescription
from semistream.pipeline.sources.contract import read_options
from semistream.pipeline.sources.files import read_dead_letters
from semistream.pipeline.sources.message_values import VALUES, check_avro_schema
from semistream.pipeline.toml_table import TomlTable, suggestion
from semistream.pipeline.written_schema import WrittenSchema

TOPIC_KEYS = (
    *("servers", "topic", "value", "schema", "schema_ids", "message", "headers", "start", "expired"),
    *("max_rows_per_trigger", "corrupt", "dead_letters", "options"),
)
_ATTRIBUTES = ("key", "key_bytes", "timestamp", "topic", "partition", "offset", "headers")
_SERVERS = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}(,([\w.-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5})*")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_OPTIONS = (
    *("minPartitions", "maxRecordsPerPartition", "groupIdPrefix", "minOffsetsPerTrigger", "maxTriggerDelay"),
    *("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy"),
    *("fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "kafkaConsumer.pollTimeoutMs"),
)
_BY_KEYS = {
    "kafka.bootstrap.servers": "servers",
    "subscribe": "topic",
    "subscribepattern": "topic",
    "assign": "topic",
    "startingoffsets": "start",
    "failondataloss": "expired",
    "maxoffsetspertrigger": "max_rows_per_trigger",
    "includeheaders": "headers",
}
_COMMITTED = {"kafka.isolation.level": "read_committed"}
_MAX_SCHEMA_BYTES = 1_000_000


def describe_topic(table: TomlTable, format_name: str, folder: Path) -> SourceDescription:
    """Return the topics to read, and what becomes of their messages."""
    value = table.text("value", "json", choices=VALUES)
    letters_topic = _read_letters_topic(table)
    topics = _read_topics(table)
    return SourceDescription(
        where=table.name,
        format=format_name,
        schema=_read_schema(table, value, folder),
        options=_read_options(table, format_name),
        dead_letters=None if letters_topic is not None else read_dead_letters(table, folder),
        dead_letters_topic=letters_topic,
        topic=SourceTopicDescription(
            servers=_read_servers(table),
            topics=topics,
            value=value,
            schema_ids=_read_schema_ids(table, value),
            message=_read_message(table),
            headers=_read_headers(table),
            start=table.text("start", "earliest", choices=("earliest", "latest")),
            skips_expired=table.text("expired", "stop", choices=("stop", "skip")) == "skip",
            max_rows_per_trigger=table.whole_number("max_rows_per_trigger", minimum=1),
        ),
    )


def _read_servers(table: TomlTable) -> str:
    servers = secrets.from_environment(table.required("servers"), f"{table.name} servers") or table.text("servers")
    servers = re.sub(r"\s*,\s*", ",", servers.strip())
    if not _SERVERS.fullmatch(servers):
        raise table.wrong("servers", 'must name brokers with their ports, such as "host:9092,other:9092"')
    return servers


def _read_topics(table: TomlTable) -> tuple[str, ...]:
    given = table.required("topic")
    listed = given if isinstance(given, list) else [given]
    topics = [topic for topic in listed if isinstance(topic, str)]
    if not topics or len(topics) < len(listed) or len(set(topics)) < len(topics):
        raise table.unexpected("topic", "the name of a topic, or a list of different ones")
    for topic in topics:
        _check_topic(table, "topic", topic)
    return tuple(topics)


def _check_topic(table: TomlTable, key: str, topic: str) -> None:
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise table.wrong(key, f"has {topic[:60]!r}, which is no topic: use letters, digits, '.', '_' and '-'")


def _read_schema(table: TomlTable, value: str, folder: Path) -> str | None:
    if value in ("text", "binary"):
        if "schema" in table:
            raise table.wrong("schema", f"does not apply to value = {value!r}: leave it out")
        return None
    if value == "json":
        text = table.text("schema")
        WrittenSchema.read(table, "schema", text)
        return text
    given = table.required("schema")
    if isinstance(given, Mapping):
        text = _schema_of_file(TomlTable(f"{table.name} schema", given, ("file",)), folder)
    elif isinstance(given, str):
        text = given
    else:
        raise table.unexpected("schema", 'an Avro schema in JSON, or { file = "orders.avsc" }')
    check_avro_schema(table, text)
    return text


def _schema_of_file(table: TomlTable, folder: Path) -> str:
    place = places.read_place(table, "file", folder)
    if not places.is_local(place):
        raise table.wrong("file", "must be a file of this machine")
    try:
        with Path(place).open("rb") as file:
            return file.read(_MAX_SCHEMA_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        raise table.wrong("file", f"is {place}, which cannot be read as text: correct the path") from None


def _read_schema_ids(table: TomlTable, value: str) -> tuple[int, ...]:
    if value != "confluent_avro":
        if "schema_ids" in table:
            raise table.wrong("schema_ids", "is for value = 'confluent_avro' only: leave it out")
        return ()
    ids = table.required("schema_ids")
    if not isinstance(ids, list) or not ids or not all(type(one) is int and 0 <= one < 2**31 for one in ids):
        raise table.unexpected(
            "schema_ids", "a list of the numbers that the registry has for this schema, such as [17]"
        )
    return tuple(ids)


def _read_message(table: TomlTable) -> dict[str, str]:
    columns = table.texts_by_name("message") if "message" in table else {}
    for attribute, name in columns.items():
        if attribute not in _ATTRIBUTES:
            raise table.wrong(
                f"message.{attribute}", f"is not a part of a message: {suggestion(attribute, _ATTRIBUTES)}"
            )
        table.check_new_name("message", name)
    return columns


def _read_headers(table: TomlTable) -> dict[str, str]:
    columns = table.texts_by_name("headers") if "headers" in table else {}
    for name in columns:
        table.check_new_name("headers", name)
    return columns


def _read_options(table: TomlTable, format_name: str) -> dict[str, str]:
    options = read_options(table, format_name, None)
    for name in options:
        if name.lower() in _BY_KEYS:
            raise table.wrong(f"options.{name}", f"is not taken: give {_BY_KEYS[name.lower()]} in {table.name}")
        if not name.startswith("kafka.") and name not in _OPTIONS:
            raise table.wrong(
                f"options.{name}",
                f"is not an option of {format_name!r}: write settings of the consumer as kafka.…; "
                f"{suggestion(name, _OPTIONS)}",
            )
    return {**_COMMITTED, **options}


def _read_letters_topic(table: TomlTable) -> str | None:
    given = table.value("dead_letters")
    if not isinstance(given, Mapping):
        return None
    inner = TomlTable(f"{table.name} dead_letters", given, ("topic",))
    if table.text("corrupt", "dead_letters", choices=("stop", "dead_letters")) == "stop":
        raise table.wrong("dead_letters", "contradicts corrupt = 'stop': leave one of them out")
    topic = inner.text("topic")
    _check_topic(inner, "topic", topic)
    return topic
