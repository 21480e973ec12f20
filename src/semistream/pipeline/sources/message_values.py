"""What the values of messages hold: turns them into columns, and tells why one cannot be."""

from __future__ import annotations

import json
import re
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from semistream.core.errors import InvalidSettingError
from semistream.pipeline.description import SourceDescription
from semistream.pipeline.failures import first_sentence
from semistream.pipeline.sources.contract import own, parsed_schema
from semistream.pipeline.toml_table import TomlTable
from semistream.pipeline.written_schema import OWN_PREFIX, WrittenSchema

VALUES = ("json", "avro", "confluent_avro", "text", "binary")
RECORD = own("record")
_PARSED, _VALUE, _END, _CORRUPT, _SOUND = own("parsed"), own("value"), own("end"), own("corrupt"), own("sound")
_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_NOT_ONE = "the value is not one JSON object"
_GOES_ON = r"\}\s*,"
_KEYS = 2
_PREFIX_BYTES = 5
"""What a registry's serializer puts before Avro: a zero, and the number of the schema in four bytes."""


def columns_of_values(value: str, schema: str | None) -> tuple[str, ...]:
    """Return the names of the columns that values become."""
    match value:
        case "json":
            return WrittenSchema.names(schema or "")
        case "avro" | "confluent_avro":
            return tuple(field["name"] for field in json.loads(schema or "")["fields"])
        case _:
            return ("value",)


def check_avro_schema(table: TomlTable, text: str) -> None:
    """Raise an error unless a text is an Avro schema of a record; what its types mean is left to Spark."""
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise table.wrong("schema", f"is not JSON, as an Avro schema must be: {error}") from None
    fields = schema.get("fields") if isinstance(schema, dict) and schema.get("type") == "record" else None
    if not isinstance(fields, list) or not fields or not isinstance(schema.get("name"), str):
        raise table.wrong("schema", 'must be an Avro record: {"type": "record", "name": …, "fields": […]}')
    names: list[str] = []
    for field in fields:
        name = field.get("name") if isinstance(field, dict) else None
        if not isinstance(name, str) or not _AVRO_NAME.fullmatch(name) or "type" not in field:
            raise table.wrong("schema", "has a field without a plain name or without a type: correct it")
        if name.lower().startswith(OWN_PREFIX) or name.lower() in names:
            raise table.wrong("schema", f"cannot have the field {name!r} in this way: rename it")
        names.append(name.lower())


def with_records(messages: DataFrame, source: SourceDescription) -> tuple[DataFrame, Column]:
    """Return the messages with the column RECORD, and why a message has none: null for sound ones.

    The reason never holds what the message says.
    """
    topic, schema = source.topic, source.schema or ""
    assert topic is not None
    match topic.value:
        case "json":
            return _of_json(messages, parsed_schema(source, schema))
        case "avro":
            return _of_avro(messages, source, schema, F.col("value"), F.lit(False))
        case "confluent_avro":
            ids = [f"{'00'}{one:08X}" for one in topic.schema_ids]
            other = ~F.hex(F.substring("value", 1, _PREFIX_BYTES)).isin(ids)
            body = F.expr(f"substring(value, {_PREFIX_BYTES + 1})")
            return _of_avro(messages, source, schema, body, other)
        case "text":
            text = F.col("value").cast("string")
            reason = F.when(~F.is_valid_utf8(text), F.lit("the value is not UTF-8"))
            return messages.withColumn(RECORD, F.struct(text.alias("value"))), reason
        case _:
            return messages.withColumn(RECORD, F.struct("value")), F.lit(None).cast("string")


def _of_json(messages: DataFrame, schema: StructType) -> tuple[DataFrame, Column]:
    """Parse each value as one object, wrapped into another: alone, Spark would ignore whatever follows the first."""
    text = F.col("value").cast("string")
    wrapped = F.concat(F.lit(f'{{"{_VALUE}":'), text, F.lit(f',"{_END}":true}}'))
    nullable = StructType([StructField(field.name, field.dataType) for field in schema])
    fields = [(_VALUE, nullable), (_END, BooleanType()), (_CORRUPT, StringType())]
    whole = StructType([StructField(name, kind) for name, kind in fields])
    # Texts without a zone mean the same moment whatever zone the session has.
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "timeZone": "UTC"}
    parsed = messages.withColumn(_PARSED, F.from_json(wrapped, whole, options))
    found = parsed.withColumn(RECORD, F.col(_PARSED)[_VALUE])
    reason = (
        F.when(F.col("value").isNull(), F.lit("it has no value"))
        .when(~F.is_valid_utf8(text), F.lit("the value is not UTF-8"))
        .when(F.col(RECORD).isNull() | F.col(_PARSED)[_END].isNull(), F.lit(_NOT_ONE))
        # What follows the object may continue the one around it; few texts look so that their keys must be counted.
        .when(text.rlike(_GOES_ON) & (F.size(F.json_object_keys(wrapped)) != _KEYS), F.lit(_NOT_ONE))
        .when(F.col(_PARSED)[_CORRUPT].isNotNull(), F.lit("a value does not have the type of its column"))
    )
    for field in schema:
        if not field.nullable:
            missing = F.lit(f"the column {field.name!r} is missing or null")
            reason = reason.when(F.col(RECORD)[field.name].isNull(), missing)
    return found, reason


def _of_avro(
    messages: DataFrame, source: SourceDescription, schema: str, body: Column, other_schema: Column
) -> tuple[DataFrame, Column]:
    """Parse each value with one field more, which only sound records have: Spark gives nulls for all others."""
    writer: dict[str, Any] = json.loads(schema)
    reader = {**writer, "fields": [*writer["fields"], {"name": _SOUND, "type": "boolean", "default": True}]}
    try:
        record = from_avro(body, schema, {"mode": "PERMISSIVE", "avroSchema": json.dumps(reader)})
        found = messages.withColumn(RECORD, record)
        found.schema  # noqa: B018 - asked for, so that Spark parses the schema now
    except PySparkException as error:
        raise InvalidSettingError(
            f"{source.where} schema is not one that Spark reads: {first_sentence(error)}"
        ) from None
    reason = (
        F.when(F.col("value").isNull(), F.lit("it has no value"))
        .when(other_schema, F.lit("the value is not of one of schema_ids"))
        .when(F.col(RECORD)[_SOUND].isNull(), F.lit("the value is not Avro of the schema"))
    )
    return found, reason
