"""Pipelines that read topics, and messages for them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline_runs import SCHEMA, SmallPipeline
from pyspark.sql import SparkSession

from servers.kafka import KafkaBroker

AVRO_SCHEMA = {
    "type": "record",
    "name": "sale",
    "fields": [
        {"name": "sale_id", "type": "long"},
        {"name": "product_id", "type": ["null", "long"], "default": None},
        {"name": "quantity", "type": "int"},
        {"name": "note", "type": "string"},
        {"name": "sold_at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}


class TopicPipeline(SmallPipeline):
    """A small pipeline whose source is a new topic; `settings` are more lines of [source]."""

    def __init__(
        self, spark: SparkSession, folder: Path, broker: KafkaBroker, settings: str = "", **changes: str
    ) -> None:
        self.broker = broker
        self.topic = f"sales-{uuid.uuid4().hex[:8]}"
        broker.create(self.topic)
        if "schema" not in settings and "value" not in settings:
            settings += f'\nschema = "{SCHEMA}"'
        source = f'format = "kafka"\nservers = "{broker.servers}"\ntopic = "{self.topic}"\n{settings}'
        super().__init__(spark, folder, source=source, **changes)
        self.build()

    def send(self, *messages: Any, partition: int = 0) -> None:
        """Send messages to one partition; a mapping goes as JSON."""
        values = [json.dumps(each) if isinstance(each, Mapping) else each for each in messages]
        self.broker.send(self.topic, values, partition=partition)


def avro_sale(number: int, product: int | None, quantity: int, note: str, sold_at: int) -> bytes:
    """Return a record of AVRO_SCHEMA, written by Avro's specification."""
    text = note.encode()
    product_bytes = avro_long(0) if product is None else avro_long(1) + avro_long(product)
    return avro_long(number) + product_bytes + avro_long(quantity) + avro_long(len(text)) + text + avro_long(sold_at)


def avro_long(number: int) -> bytes:
    """Return a whole number as Avro writes it: zigzag, seven bits a byte."""
    rest = (number << 1) ^ (number >> 63)
    written = bytearray()
    while rest > 0x7F:
        written.append((rest & 0x7F) | 0x80)
        rest >>= 7
    return bytes([*written, rest])
