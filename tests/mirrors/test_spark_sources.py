"""Mirrors of Delta tables and of topics of Kafka, each in a process with a Spark session of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import semistream as ss
from semistream.core.errors import InvalidSettingError
from semistream.mirrors.sources import source_at
from servers.delta import delta_settings
from servers.kafka import KafkaBroker, kafka_settings

_SHARED = Path(__file__).parents[1] / "shared"


def _tried(what: str, folder: Path, settings: dict[str, str], *more: str) -> None:
    script = Path(__file__).with_name("spark_mirrors.py")
    command = [sys.executable, str(script), what, str(folder), json.dumps(settings), *more]
    paths = [str(_SHARED), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=500)
    assert done.returncode == 0, done.stderr[-6000:]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["delta with its feed", "delta without its feed"])
def test_a_mirror_of_a_delta_table_follows_every_kind_of_change(what: str, tmp_path: Path) -> None:
    _tried(what, tmp_path, delta_settings())


@pytest.mark.slow
def test_a_mirror_of_a_topic_follows_upserts_and_deletes(tmp_path: Path) -> None:
    broker, settings = KafkaBroker(), kafka_settings()
    broker.start()
    try:
        _tried("kafka", tmp_path, settings, broker.servers)
    finally:
        broker.stop()


def test_sources_of_spark_have_addresses() -> None:
    assert source_at("delta:/lake/products") == ss.DeltaSource("/lake/products")
    topic = source_at("kafka://h1:9092,h2:9092/products?schema=id BIGINT, name STRING&format=debezium")
    assert topic == ss.KafkaSource("h1:9092,h2:9092", "products", "id BIGINT, name STRING", format="debezium")


def test_a_secret_of_a_topic_comes_from_the_environment() -> None:
    option = "sasl.jaas.config"
    with pytest.raises(InvalidSettingError, match="is a secret") as refused:
        ss.KafkaSource("h:9092", "t", "id BIGINT", options={option: "canary"})
    assert "canary" not in str(refused.value)
    source = ss.KafkaSource("h:9092", "t", "id BIGINT", options={option: {"env": "JAAS"}})
    assert source.described()["options"] == {option: {"env": "JAAS"}}
    assert type(source).of_description(source.described()) == source
