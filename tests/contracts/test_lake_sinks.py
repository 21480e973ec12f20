"""Sinks that need jars keep the contract, in a process with a Spark session of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from servers.spark_jars import jars_of, servers_folder

_SOME = "TestTopic or upsert_in_a_pipeline or any_format or secrets"


def _tried(*options: str) -> None:
    for name in ("delta", "kafka", "avro", "broker"):
        jars_of(name)
    file = Path(__file__).with_name("lake_sinks.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "500", str(file), *options]
    environment = {**os.environ, "SEMISTREAM_JARS": str(servers_folder()), "PYSPARK_PYTHON": sys.executable}
    for name in [name for name in environment if name.startswith("PYTEST")]:
        del environment[name]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=590)
    assert done.returncode == 0, done.stdout[-8000:]


def test_topics_and_an_upsert_into_delta_keep_their_promises() -> None:
    _tried("-k", _SOME)


@pytest.mark.slow
def test_delta_keeps_the_contract_of_sinks() -> None:
    _tried("-k", f"not ({_SOME})")
