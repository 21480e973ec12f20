"""An S3 server on loopback for trying things out: moto, which keeps everything in its memory."""

from __future__ import annotations

import os
import secrets
import socket
import time
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

LOOPBACK = "127.0.0.1"
BUCKET = "lake"
_START_SECONDS = 60.0


@dataclass(frozen=True)
class S3Server:
    """Where the server listens, and the secret of its one user; it starts when its command is run."""

    port: int
    secret: str

    @classmethod
    def planned(cls) -> S3Server:
        """Choose a free port."""
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            return cls(int(probe.getsockname()[1]), secrets.token_hex(16))

    @property
    def command(self) -> list[str]:
        """The command that runs the server."""
        return [str(installed() or "moto_server"), "-H", LOOPBACK, "-p", str(self.port)]

    @property
    def settings(self) -> dict[str, str]:
        """What a process needs in its environment, besides the keys in its home."""
        return {
            "AWS_ENDPOINT_URL": f"http://{LOOPBACK}:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
        }

    def answers(self) -> bool:
        """Say whether somebody listens."""
        with socket.socket() as probe:
            return probe.connect_ex((LOOPBACK, self.port)) == 0

    def leave_keys(self, home: Path) -> None:
        """Put the keys where Amazon's tools look for them, too."""
        path = home / ".aws" / "credentials"
        path.parent.mkdir(mode=0o700)
        path.touch(0o600)
        path.write_text(f"[default]\naws_access_key_id = cluster\naws_secret_access_key = {self.secret}\n")

    def make_bucket(self) -> None:
        """Wait until the server answers, and make the bucket."""
        end = time.monotonic() + _START_SECONDS
        while True:
            connection = HTTPConnection(LOOPBACK, self.port, timeout=10)
            try:
                connection.request("PUT", f"/{BUCKET}", headers={"Host": "s3.amazonaws.com"})
                connection.getresponse().read()
                return
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
            finally:
                connection.close()


def installed() -> Path | None:
    """Return the program of the server, which `make servers` installs; None if it is not there."""
    named = os.environ.get("SEMISTREAM_MOTO_SERVER")
    path = Path(named) if named else Path(__file__).parents[1] / ".servers" / "moto" / "bin" / "moto_server"
    return path if path.exists() else None
