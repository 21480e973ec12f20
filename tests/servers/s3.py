"""An S3 server on loopback: moto, which keeps everything in its memory."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import pytest
from server_process import ServerProcess, free_port, server_folder

from servers.left_out import left_out

REPOSITORY = Path(__file__).parents[2]
SECRET = "canary-3a91f0c2d7"
"""The secret key of the tests, which must show nowhere."""


@dataclass(frozen=True)
class S3Server:
    """A running server with one bucket."""

    port: int
    bucket: str = "lake"

    @property
    def settings(self) -> dict[str, str]:
        """What a process needs in its environment to use the server."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    def answers(self) -> bool:
        """Say whether somebody listens."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def address(self, name: str = "table") -> str:
        """Return the address of a folder that nobody else uses."""
        return f"s3://{self.bucket}/{uuid.uuid4().hex[:12]}/{name}"


def _installed() -> str:
    named = os.environ.get("SEMISTREAM_MOTO_SERVER")
    path = Path(named) if named else REPOSITORY / ".servers" / "moto" / "bin" / "moto_server"
    if not path.exists():
        left_out("moto's S3 server is not installed: run `make servers`.")
    return str(path)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """Start the server once for all tests of the process."""
    command = _installed()
    server = S3Server(free_port())
    process = ServerProcess([command, "-H", "127.0.0.1", "-p", str(server.port)], server_folder("s3", None))
    try:
        process.start(server.answers)
        connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
        connection.request("PUT", f"/{server.bucket}", headers={"Host": "s3.amazonaws.com"})
        assert connection.getresponse().status == 200
        connection.close()
        yield server
    finally:
        process.stop()


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """Return the server, with its settings in the environment of the test."""
    for name, value in s3_server.settings.items():
        monkeypatch.setenv(name, value)
    return s3_server
