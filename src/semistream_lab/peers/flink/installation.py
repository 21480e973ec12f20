"""What of Flink is installed on this machine, in an environment of its own because its libraries are not ours."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from semistream_lab.peers.contract import PeerFailedError

PYTHON_VARIABLE = "SEMISTREAM_PEERS_FLINK_PYTHON"
JARS_VARIABLE = "SEMISTREAM_PEERS_FLINK_JARS"
_PROBE = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pyflink') is None)"
_SECONDS_TO_PROBE = 60
_JARS = {"flink-connector-jdbc": "flink-connector-jdbc-[0-9]*.jar", "the driver postgresql": "postgresql-[0-9]*.jar"}


@dataclass(frozen=True)
class FlinkInstallation:
    """The Python that has PyFlink, and the folder with the jars of the JDBC connector and its driver."""

    python: Path | None = None
    jars: Path | None = None

    def why_unavailable(self) -> str | None:
        """Return one sentence if there is no Python with PyFlink, or no Java."""
        if self.python is None:
            return (
                f"No Flink was named: `pip install apache-flink` in an environment of its own and set "
                f"{PYTHON_VARIABLE} to its Python."
            )
        if not (self.python.is_file() and _has_pyflink(self.python)):
            return f"The Python of {PYTHON_VARIABLE} has no PyFlink: `pip install apache-flink` there."
        if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
            return "There is no Java: install version 11 or 17 or set JAVA_HOME."
        return None

    def why_no_connector(self) -> str | None:
        """Return one sentence if there is not exactly one jar of the JDBC connector and of the driver."""
        if self.jars is None:
            return f"No jars were named: put flink-connector-jdbc and postgresql into a folder and set {JARS_VARIABLE}."
        for name, pattern in _JARS.items():
            if len(list(self.jars.glob(pattern))) != 1:
                return f"The folder of {JARS_VARIABLE} must have exactly one jar of {name} ({pattern})."
        return None

    def connector_jars(self) -> list[Path]:
        """Return the jars of the connector and of the driver; others in the folder are not loaded."""
        if (missing := self.why_no_connector()) is not None:
            raise PeerFailedError(missing)
        assert self.jars is not None
        return [jar.resolve() for pattern in _JARS.values() for jar in self.jars.glob(pattern)]


def _has_pyflink(python: Path) -> bool:
    try:
        command = [str(python), "-I", "-c", _PROBE]
        return subprocess.run(command, capture_output=True, check=False, timeout=_SECONDS_TO_PROBE).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
