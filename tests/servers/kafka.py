"""The broker of Kafka of the tests, and Spark's connector."""

from __future__ import annotations

from collections.abc import Iterator

import pyspark
import pytest
from kafka_broker import KafkaBroker

from servers.left_out import left_out_if_missing
from servers.spark_jars import jars_of, jars_that_are_there

__all__ = ["PASSWORD", "USER", "KafkaBroker", "kafka", "kafka_jars", "kafka_settings"]

USER, PASSWORD = "clerk", "canary-of-kafka"
"""Who may use the listener that asks for a password."""


def kafka_settings() -> dict[str, str]:
    """Return the settings of a session that reads and writes topics."""
    jars = [jar for name in _CONNECTOR for jar in jars_of("kafka", f"{name}*.jar")]
    return {"spark.jars": ",".join(map(str, jars))}


def kafka_jars() -> list[str]:
    """Return the jars of Kafka's connector and of Avro, as far as they are there and this Spark takes them."""
    if not pyspark.__version__.startswith(_SPARK):
        return []
    jars = [jar for name in _CONNECTOR for jar in jars_that_are_there("kafka", f"{name}*.jar")]
    return [str(jar) for jar in (*jars, *jars_that_are_there("avro"))]


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """Return a broker for all tests of this process."""
    if not pyspark.__version__.startswith(_SPARK):
        pytest.skip(f"The jars of `make servers` are for Spark {_SPARK}.")
    for name in ("kafka", "avro"):
        jars_of(name)
    with left_out_if_missing():
        broker = KafkaBroker((USER, PASSWORD))
    broker.start()
    yield broker
    broker.stop()


_SPARK = "4.2"
_CONNECTOR = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2")
