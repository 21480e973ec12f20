"""Reads the table [sink] of a pipeline's file."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from pathlib import Path

from semistream.core.errors import InvalidSettingError
from semistream.pipeline import places, secrets
from semistream.pipeline.description import FILE_FORMATS, SinkDescription, SinkTopicDescription
from semistream.pipeline.reading_options import options_of
from semistream.pipeline.toml_table import TomlTable, has_control_characters
from semistream.store.database.address import parse_address

DATABASES = ("postgresql", "mysql")
SINK_KEYS = (
    *("format", "path", "partition_by", "table", "mode", "key", "order_by"),
    *("servers", "topic", "value", "schema", "headers", "id", "options"),
)
_UPSERTS = ("mode", "key", "order_by")
_KEYS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(FILE_FORMATS, ("path", "partition_by", "options")),
    "delta": ("path", "partition_by", "options", *_UPSERTS),
    **dict.fromkeys(DATABASES, ("table", *_UPSERTS)),
    "kafka": ("servers", "topic", "value", "schema", "key", "headers", "id", "options"),
    "console": ("options",),
    "noop": (),
}
"""The keys of each format that has some of its own; any other format of Spark has options alone."""
_OTHER_NAMES = {"mariadb": "mysql", "postgres": "postgresql"}
_FORMAT = re.compile(r"[A-Za-z][\w.$-]{0,199}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_OURS = {
    "checkpointlocation": "give checkpoint in [pipeline]",
    "queryname": "the name in [pipeline] is used",
    "txnappid": "semistream sets it",
    "txnversion": "semistream sets it",
    "kafka.bootstrap.servers": "give servers",
    "topic": "give topic",
}


def read_sink(table: TomlTable, folder: Path) -> SinkDescription:
    """Return where the rows go."""
    name = _read_format(table)
    for key in SINK_KEYS[1:]:
        if key in table and key not in _KEYS.get(name, ("options",)):
            raise table.wrong(key, f"does not apply to the format {name!r}: leave it out")
    mode = table.text("mode", "append", choices=("append", "upsert"))
    sink = SinkDescription(
        format=name,
        path=places.written_place(table, "path", folder) if "path" in _KEYS.get(name, ()) else None,
        partition_by=table.optional_names("partition_by") or (),
        mode=mode,
        key=_read_key(table),
        order_by=_read_column(table, "order_by"),
        table=_read_table(table, name) if name in DATABASES else None,
        topic=_read_topic(table) if name == "kafka" else None,
        options=_read_options(table, name),
    )
    _check_upsert(table, sink)
    return sink


def _read_format(table: TomlTable) -> str:
    name = table.text("format")
    if name in _KEYS:
        return name
    if name.lower() in _KEYS:
        return name.lower()
    near = _OTHER_NAMES.get(name) or next(iter(difflib.get_close_matches(name, _KEYS, n=1, cutoff=0.75)), None)
    if near is not None:
        raise table.wrong("format", f"cannot be {name!r}: did you mean {near!r}?")
    if not _FORMAT.fullmatch(name):
        raise table.wrong("format", f"is {name!r}, which no format of Spark is called: give its name or its class")
    return name


def _read_key(table: TomlTable) -> tuple[str, ...]:
    if isinstance(table.value("key"), str):
        return (_read_column(table, "key") or "",)
    return table.optional_names("key") or ()


def _read_column(table: TomlTable, key: str) -> str | None:
    name = table.optional_text(key)
    if name is not None:
        table.check_name(key, name)
    return name


def _check_upsert(table: TomlTable, sink: SinkDescription) -> None:
    if sink.mode == "upsert":
        if not sink.key:
            raise table.wrong("key", "is missing: an upsert finds rows by their key, so name its columns")
        if sink.order_by is not None and sink.order_by in sink.key:
            raise table.wrong("order_by", "is a column of the key, which is the same in all rows of a key")
    else:
        for key in ("key", "order_by") if sink.topic is None else ():
            if key in table:
                raise table.wrong(key, 'has no effect without mode = "upsert": set it, or leave the key out')


def _read_table(table: TomlTable, name: str) -> str:
    text = secrets.from_environment(table.required("table"), "[sink] table") or table.text("table")
    try:
        address = parse_address(text, needs_key=False)
    except InvalidSettingError as error:
        raise table.wrong("table", f"cannot be used: {error}") from None
    if address.kind != name:
        raise table.wrong("table", f"is at {address.kind}://, but the format is {name!r}: give the same for both")
    if address.key:
        raise table.wrong("table", "has the option key in its address: give key in [sink]")
    return text


def _read_topic(table: TomlTable) -> SinkTopicDescription:
    topic = table.text("topic")
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise table.wrong("topic", f"cannot be {topic!r}: use letters, digits, '.', '_' and '-'")
    value = table.text("value", "json", choices=("json", "avro"))
    headers = table.texts_by_name("headers") if "headers" in table else {}
    for header, column in headers.items():
        if not header or has_control_characters(header):
            raise table.wrong("headers", f"has {header!r}, which is not a name: give a plain name")
        table.check_name("headers", column)
    made = table.text("id", "semistream_id")
    table.check_new_name("id", made)
    return SinkTopicDescription(table.text("servers"), topic, value, _read_schema(table, value), headers, made)


def _read_schema(table: TomlTable, value: str) -> str | None:
    if "schema" not in table:
        return None
    if value != "avro":
        raise table.wrong("schema", f"does not apply to values in {value}: leave it out")
    schema = table.required("schema")
    try:
        described = json.loads(schema) if isinstance(schema, str) else None
    except ValueError:
        described = None
    if not isinstance(described, Mapping) or described.get("type") != "record":
        raise table.wrong("schema", 'is not a record of Avro: write it as {"type": "record", "name": …, "fields": […]}')
    return str(schema)


def _read_options(table: TomlTable, name: str) -> dict[str, str]:
    def refused(key: str) -> str | None:
        reserved = _OURS.get(key.lower()) or ("give path" if key.lower() == "path" and name in _KEYS else None)
        return None if reserved is None else f"cannot be set here: {reserved}"

    return options_of(table, refused)
