"""A broker of Kafka on loopback, and Spark's connector."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import uuid
from contextlib import suppress

from servers.server_process import ServerProcess, free_port, left_out, server_folder
from servers.spark_jars import jars_of


class KafkaBroker:
    """One broker that is its own controller."""

    def __init__(self) -> None:
        java = shutil.which("java")
        if java is None:
            left_out("Java is not installed: run `make servers`.")
        self.folder = server_folder("kafka", None)
        self.port, controller = free_port(), free_port()
        settings = self.folder / "server.properties"
        settings.write_text(
            f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={self.folder / "logs"}
num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=true
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
        self.process.start(self._answers, 60)

    def stop(self) -> None:
        """Stop, and remove everything."""
        self.process.stop(signal.SIGTERM)

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


def kafka_settings() -> dict[str, str]:
    """Return the settings of a session that reads and writes topics."""
    names = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2")
    jars = [jar for name in names for jar in jars_of("kafka", f"{name}*.jar")]
    return {"spark.jars": ",".join(map(str, jars))}
