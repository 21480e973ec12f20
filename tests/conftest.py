"""One Spark session for all tests of a process, since starting one takes seconds."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from servers.kafka import kafka, kafka_jars  # noqa: F401 - fixtures for all tests
from servers.mariadb import mariadb  # noqa: F401
from servers.postgresql import postgresql  # noqa: F401
from servers.s3 import s3, s3_server  # noqa: F401

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Return a small local session on loopback whose files lie in a temporary folder."""
    from pyspark.sql import SparkSession

    folder: Path = tmp_path_factory.mktemp("spark")
    # Without it the workers run the system's Python, which has none of our libraries.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("semistream tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        # Tests end before the second compiler of Java pays, and it would take a core from them.
        .config(
            "spark.driver.extraJavaOptions",
            f"-Dderby.system.home={folder} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        )
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
    )
    if jars := kafka_jars():
        builder = builder.config("spark.jars", ",".join(jars))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
