"""An object store that is slow: an S3 server (moto) on loopback, behind a proxy that delays and throttles.

Used by `object_store_tier.py` and `waiting_room.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np

from semistream.store.places.choice import place_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

LATENCY_SECONDS, BYTES_PER_SECOND = 0.02, 200e6
BUCKET = "lake"
_MOTO_SERVER = Path(__file__).resolve().parents[1] / ".servers" / "moto" / "bin" / "moto_server"
_COPIED_BYTES = 8 << 20


@contextmanager
def slow_store(script: str, server: str | None) -> Iterator[None]:
    """Run the server and the proxy, and put what reaches them into the environment.

    The proxy is `script --serve PORT`, which must call `served`, so that it has a process of its own.
    """
    from servers.s3 import S3Server  # isort: skip - makes the next one known
    from server_process import ServerProcess, free_port, server_folder

    command = server or os.environ.get("SEMISTREAM_MOTO_SERVER") or str(_MOTO_SERVER)
    moto = S3Server(free_port(), BUCKET)
    process = ServerProcess([command, "-H", "127.0.0.1", "-p", str(moto.port)], server_folder("s3", None))
    process.start(moto.answers)
    proxy = subprocess.Popen(
        [sys.executable, script, "--serve", str(moto.port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert proxy.stdout is not None
        behind = S3Server(int(proxy.stdout.readline()), BUCKET)
        os.environ.update(behind.settings)
        yield
    finally:
        proxy.kill()
        proxy.wait()
        process.stop()


def served(target_port: int) -> None:
    """Be the proxy of a server, until somebody ends the process."""
    from servers.proxy import Proxy

    with Proxy(target_port, LATENCY_SECONDS, BYTES_PER_SECOND, keeps=lambda path: "data-" in path) as proxy:
        print(proxy.port, flush=True)
        while True:
            time.sleep(60)
            proxy.requests.clear()


def copied(local: str, remote: str) -> None:
    """Put the objects of a table under another address, as they are."""
    from http.client import HTTPConnection

    connection = HTTPConnection("127.0.0.1", int(os.environ["AWS_ENDPOINT_URL"].rpartition(":")[2]))
    connection.request("PUT", f"/{BUCKET}")
    connection.getresponse().read()
    source, target = place_of(local), place_of(remote)
    for name in sorted(source.names(), key=lambda name: name.startswith("manifest")):
        if name.startswith(("data-", "index-", "manifest-")):
            copy = target.new_object(name)
            with source.stream(name) as file:
                while block := file.read(_COPIED_BYTES):
                    copy.write(block)
            copy.finish()


def taken_by_proxy(remote: str) -> None:
    """Let the proxy fetch the data of a table, so that no measured request waits for the server."""
    place = place_of(remote)
    for name in place.names(starting="data-"):
        place.read_ranges(name, np.array([[0, 8, 0]]), np.empty(8, dtype=np.uint8))


def latency_ms(address: str) -> float:
    """Return how long a small request takes."""
    place, taken = place_of(address), []
    for _ in range(20):
        began = time.perf_counter()
        place.status("manifest-00000001.json")
        taken.append(1000 * (time.perf_counter() - began))
    return median(taken)
