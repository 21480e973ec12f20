"""A broker of Kafka on loopback for trying things out."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any

from server_process import NotInstalledError, ServerProcess, free_port, needed_jars, server_folder

Message = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes]]]
"""Key, value and headers."""
_SASL = """sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
"""


class KafkaBroker:
    """One broker that is its own controller."""

    def __init__(self, login: tuple[str, str] | None = None, partitions: int = 2) -> None:
        """With `login`, a user and a password, there is a second listener that asks for them."""
        java = shutil.which("java")
        if java is None:
            raise NotInstalledError("Java is not installed: install Java 17 or later.")
        if importlib.util.find_spec("kafka") is None:
            raise NotInstalledError("kafka-python is not installed: run `make install`.")
        path = ":".join(map(str, needed_jars("broker")))
        self.folder = server_folder("kafka", None)
        self.port, self.sasl_port, controller = free_port(), free_port(), free_port()
        settings = self.folder / "server.properties"
        sasl = "" if login is None else _SASL.format(user=login[0], password=login[1])
        listeners = f"PLAINTEXT://127.0.0.1:{self.port}"
        if login is not None:
            listeners += f",SASL://127.0.0.1:{self.sasl_port}"
        settings.write_text(
            f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={listeners},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={listeners}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT
inter.broker.listener.name=PLAINTEXT
{sasl}log.dirs={self.folder / "logs"}
num.partitions={partitions}
log.retention.ms=-1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=true
"""
        )
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
