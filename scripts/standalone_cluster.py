#!/usr/bin/env python3
"""Starts a Spark standalone cluster on loopback, runs a command against it and stops the cluster.

    python scripts/standalone_cluster.py -- sh -c 'spark-submit --master "$SPARK_MASTER_URL" job.py'

The cluster is the one of the PySpark that this Python has: a master, workers, and real executors in processes of their
own. The command finds the master's address in SPARK_MASTER_URL, PySpark's folder in SPARK_HOME and its commands on the
PATH; executors run this Python. The exit code is that of the command. All ports are free ones on 127.0.0.1.

With --apart there is no folder that two of them share: the command and each worker are nodes of their own
(separate_nodes.py), and an S3 server is there for what they share. Its address is in AWS_ENDPOINT_URL, the keys are in
~/.aws of each node, and its bucket is s3://lake.
"""

from __future__ import annotations

import argparse
import errno
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).parent))

import s3_server
from s3_server import S3Server
from separate_nodes import Node, why_not

LOOPBACK = "127.0.0.1"
_MASTER_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER_STARTED = re.compile(r"Successfully registered with master (\S+)")
_START_SECONDS = 120.0
_STOP_SECONDS = 20.0
_POLL_SECONDS = 0.1
_FOREIGN = re.compile(r"SPARK_(MASTER|WORKER|DAEMON|PUBLIC|REMOTE|CONF|LOCAL)\w*|SPARK_HOME")
"""Settings of another Spark, which would move ports and folders elsewhere."""


class ClusterError(Exception):
    """The cluster did not start; the message is one sentence for the user."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command against a new cluster and return its exit code."""
    options = _options(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _leave)
    with ExitStack() as stack:
        if options.folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spark-cluster-")))
        else:
            folder = options.folder.absolute()
            folder.mkdir(parents=True, exist_ok=True)
        try:
            nodes = stack.enter_context(_apart(folder, options.workers)) if options.apart else None
            url = stack.enter_context(cluster(folder, options.workers, options.cores, options.memory, nodes))
        except ClusterError as error:
            print(error, file=sys.stderr)
            return 1
        environment = {**_environment(folder), "SPARK_MASTER_URL": url}
        try:
            command = stack.enter_context(_command_running(options.command, environment, nodes))
        except OSError as error:
            print(f"{options.command[0]} cannot be run: {error.strerror}.", file=sys.stderr)
            return 127
        code = command.wait()
        return code if code >= 0 else 128 - code


@contextmanager
def cluster(folder: Path, workers: int, cores: int, memory: str, nodes: Nodes | None = None) -> Iterator[str]:
    """Give the address of a cluster whose logs and work lie in a folder; it is stopped at the end of the block."""
    environment = _environment(folder)
    with ExitStack() as stack:
        master = _daemon("deploy.master.Master", [], folder / "master.log", environment)
        url = _awaited(stack.enter_context(master), _MASTER_STARTED, folder / "master.log")
        started = []
        for number in range(1, workers + 1):
            name = f"worker-{number}"
            log, node = folder / f"{name}.log", None if nodes is None else nodes.workers[number - 1]
            work = folder / name if node is None else node.folder / "work"
            place = ["--work-dir", str(work), "--cores", str(cores), "--memory", memory, url]
            started.append((stack.enter_context(_daemon("deploy.worker.Worker", place, log, environment, node)), log))
        for worker, log in started:
            _awaited(worker, _WORKER_STARTED, log)
        yield url


@dataclass(frozen=True)
class Nodes:
    """The nodes of a cluster that share no folder."""

    driver: Node
    workers: list[Node]


@contextmanager
def _apart(folder: Path, workers: int) -> Iterator[Nodes]:
    """Make nodes that share no folder, and run an S3 server on one more."""
    reason = why_not() or (None if s3_server.installed() else "The S3 server is not installed: run `make servers`.")
    if reason is not None:
        raise ClusterError(reason)
    server = S3Server.planned()
    names = ["driver", "s3", *(f"worker-{number}" for number in range(1, workers + 1))]
    nodes = {name: Node.made(folder / "nodes" / name, f"127.0.0.{host}") for host, name in enumerate(names, 1)}
    os.environ.update(server.settings)
    for name, node in nodes.items():
        if name != "s3":
            server.leave_keys(node.folder / "home")
    with (folder / "s3.log").open("wb") as log:
        environment = nodes["s3"].environment(os.environ)
        with _running(nodes["s3"].entered(server.command), environment, output=log.fileno()):
            server.make_bucket()
            yield Nodes(nodes["driver"], [nodes[name] for name in names[2:]])


@contextmanager
def _command_running(
    command: list[str], environment: Mapping[str, str], nodes: Nodes | None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the user's command, on a node of its own if there are nodes."""
    if nodes is not None:
        if shutil.which(command[0], path=environment["PATH"]) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        command = nodes.driver.entered(command)
        environment = nodes.driver.environment(environment) | {"SPARK_SUBMIT_OPTS": nodes.driver.java_options}
    with _running(command, environment) as process:
        yield process


@contextmanager
def _daemon(
    name: str, arguments: list[str], log: Path, environment: Mapping[str, str], node: Node | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run one of Spark's daemons; port 0 lets it take a free port."""
    spark_class = Path(environment["SPARK_HOME"]) / "bin" / "spark-class"
    own = ["--host", LOOPBACK if node is None else node.host, "--port", "0", "--webui-port", "0"]
    command = [str(spark_class), f"org.apache.spark.{name}", *own, *arguments]
    if node is not None:
        command = node.entered(command)
        environment = node.environment(environment) | {"JAVA_TOOL_OPTIONS": node.java_options}
    with log.open("wb") as file, _running(command, environment, output=file.fileno()) as process:
        yield process


@contextmanager
def _running(
    command: list[str], environment: Mapping[str, str], output: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process in a group of its own, so that a key on the terminal does not reach it before we do."""
    process = subprocess.Popen(
        command,
        env=dict(environment),
        stdin=None if output is None else subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        process_group=0,
    )
    try:
        yield process
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process with its group if it still runs: executors and what a shell has started are in it."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _awaited(process: subprocess.Popen[bytes], wanted: re.Pattern[str], log: Path) -> str:
    """Wait until a daemon says in its log that it has started, and return the address that it names."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        ended = process.poll() is not None
        text = log.read_text(errors="replace")
        if match := wanted.search(text):
            return match[1]
        if ended or time.monotonic() > deadline:
            last = "\n".join(text.splitlines()[-20:])
            raise ClusterError(f"{last}\nThe cluster did not start: see why in the lines above, from {log.name}.")
        time.sleep(_POLL_SECONDS)


def _environment(folder: Path) -> dict[str, str]:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SystemExit(f"{sys.executable} has no PySpark: install it there, or use another Python.")
    home = Path(spec.origin).parent
    kept = {name: value for name, value in os.environ.items() if not _FOREIGN.fullmatch(name)}
    return {
        **kept,
        "PATH": os.pathsep.join([str(home / "bin"), str(Path(sys.executable).parent), kept.get("PATH", os.defpath)]),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        # Otherwise the master takes jobs from anyone at a port that is always the same.
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        "PYSPARK_PYTHON": kept.get("PYSPARK_PYTHON", sys.executable),
    }


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Start a Spark standalone cluster on loopback, run a command against it, stop the cluster."
    )
    parser.add_argument("--workers", type=int, default=2, help="number of workers (2)")
    parser.add_argument("--cores", type=int, default=1, help="cores of each worker (1)")
    parser.add_argument("--memory", default="1g", help="memory of each worker for executors (1g)")
    parser.add_argument("--apart", action="store_true", help="nodes share no folder, but an S3 server")
    parser.add_argument("--folder", type=Path, help="keep logs and work folders here instead of removing them")
    parser.add_argument("command", nargs="+", help="the command, after --")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
