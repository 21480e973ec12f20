"""Runs a peer without Spark in a Python process of its own, so that its memory can be told apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from semistream_lab.peers.contract import PeerFailedError

_MAX_TOLD = 200


def run(module: str, order: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a module with an order as JSON, which must hold no secret, and return the JSON object that it prints."""
    command = [sys.executable, "-m", module, json.dumps(order)]
    variables = {**os.environ, **(environment or {})}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise PeerFailedError(f"Its process stopped ({last[0][:_MAX_TOLD]}).")
    reply: dict[str, Any] = json.loads(done.stdout)
    return reply
