"""A broker of Kafka on loopback, and Spark's connector."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any

import pyspark
import pytest

from servers.server_process import ServerProcess, free_port, left_out, server_folder
from servers.spark_jars import jars_of, jars_that_are_there

USER, PASSWORD = "clerk", "canary-of-kafka"
"""Who may use the listener that asks for a password."""
Message = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes]]]
"""Key, value and headers."""


class KafkaBroker:
    """One broker that is its own controller, with a second listener that asks for a password."""

    def __init__(self) -> None:
        java = shutil.which("java")
        if java is None:
            left_out("Java is not installed: run `make servers`.")
        self.folder = server_folder("kafka", None)
        self.port, self.sasl_port, controller = free_port(), free_port(), free_port()
        settings = self.folder / "server.properties"
        settings.write_text(
            f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller},SASL://127.0.0.1:{self.sasl_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{self.port},SASL://127.0.0.1:{self.sasl_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config={_LOGIN} user_{USER}="{PASSWORD}";
log.dirs={self.folder / "logs"}
num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=true
log.retention.ms=-1
"""
        )
        path = ":".join(map(str, jars_of("broker")))
        run = [java, "-Xmx384m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", path]
        cluster = uuid.uuid4().hex[:22]
        formatting = [*run, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
        subprocess.run(formatting, check=True, capture_output=True, cwd=self.folder)
        self.process = ServerProcess([*run, "kafka.Kafka", str(settings)], self.folder)

    @property
    def servers(self) -> str:
        """What clients connect to."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start, and wait until somebody listens."""
        self.process.start(self._answers, 180)

    def stop(self) -> None:
        """Stop, and remove everything."""
        self.process.stop(signal.SIGTERM)

    def create(self, topic: str, partitions: int = 2) -> None:
        """Make a topic."""
        from kafka.admin import NewTopic

        with closing(self._admin()) as admin:
            admin.create_topics([NewTopic(topic, partitions, 1)])

    def send(
        self,
        topic: str,
        messages: Iterable[Message | bytes | str | None],
        *,
        partition: int | None = None,
        at_ms: int | None = None,
    ) -> None:
        """Send messages in their order, and wait until the broker has them; what is no message is the value of one."""
        from kafka import KafkaProducer

        with closing(KafkaProducer(bootstrap_servers=self.servers, linger_ms=5)) as producer:
            for each in messages:
                value = each.encode() if isinstance(each, str) else each
                key, value, headers = value if isinstance(value, tuple) else (None, value, ())
                if key is None and value is None:
                    key = b"a tombstone"  # this client refuses messages that have neither
                producer.send(topic, value, key, list(headers), partition=partition, timestamp_ms=at_ms)
            producer.flush()

    def expire(self, topic: str, before: Mapping[int, int]) -> None:
        """Let the messages of each partition be gone that came before an offset."""
        from kafka import TopicPartition

        with closing(self._admin()) as admin:
            admin.delete_records({TopicPartition(topic, number): offset for number, offset in before.items()})

    def remove(self, topic: str) -> None:
        """Remove a topic, and wait until it is gone."""
        with closing(self._admin()) as admin:
            admin.delete_topics([topic])
            while topic in admin.list_topics():
                time.sleep(0.1)

    def messages(self, topic: str) -> list[Any]:
        """Return all messages of a topic."""
        from kafka import KafkaConsumer, TopicPartition

        with closing(KafkaConsumer(bootstrap_servers=self.servers, auto_offset_reset="earliest")) as consumer:
            parts = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
            consumer.assign(parts)
            ends, found = consumer.end_offsets(parts), []
            while any(consumer.position(part) < ends[part] for part in parts):
                for records in consumer.poll(timeout_ms=500).values():
                    found += records
            return found

    def _admin(self) -> Any:
        from kafka import KafkaAdminClient

        return KafkaAdminClient(bootstrap_servers=self.servers)

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


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
    if importlib.util.find_spec("kafka") is None:
        left_out("kafka-python is not installed: run `make install`.")
    if not pyspark.__version__.startswith(_SPARK):
        pytest.skip(f"The jars of `make servers` are for Spark {_SPARK}.")
    for name in ("kafka", "avro"):
        jars_of(name)
    broker = KafkaBroker()
    broker.start()
    yield broker
    broker.stop()


_SPARK = "4.2"
_CONNECTOR = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2")
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
