"""Installs the servers that tests start on loopback, as far as they are missing and can be had here.

Run it with `make servers`, or `make servers ONLY=postgresql,s3`. Says for each server whether it is there, and ends
with 1 if one is missing and `CI` is "true". Debian packages need root; everything else goes into `.servers/`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
SERVERS = ROOT / ".servers"
_MOTO = "moto[server]==5.2.5"


def main() -> int:
    """Install what is missing and return the exit code."""
    missing = []
    chosen = sys.argv[1].split(",") if len(sys.argv) > 1 else list(_INSTALLERS)
    for name in chosen:
        if name not in _INSTALLERS:
            sys.exit(f"There is no server {name!r}: choose from {', '.join(_INSTALLERS)}.")
        install = _INSTALLERS[name]
        try:
            problem = install()
        except (OSError, subprocess.SubprocessError) as error:
            problem = str(error)
        print(f"{name}: {'ready' if problem is None else f'not to be had here: {problem}'}", flush=True)
        if problem is not None:
            missing.append(name)
    return 1 if missing and os.environ.get("CI") == "true" else 0


def _postgresql() -> str | None:
    if any(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or shutil.which("initdb"):
        return None
    return _debian("postgresql")


def _mariadb() -> str | None:
    if shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin"):
        return None
    return _debian("mariadb-server")


def _s3() -> str | None:
    # Of its own, because its dependencies are not ours.
    folder = SERVERS / "moto"
    if not (folder / "bin" / "moto_server").exists():
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        _run([str(folder / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", _MOTO])
    return None


def _browser() -> str | None:
    return None if shutil.which("chromium") else _debian("chromium")


def _debian(package: str) -> str | None:
    if shutil.which("apt-get") is None:
        return f"install {package} with the package manager of this system"
    if os.geteuid() != 0:
        return f"run `sudo apt-get install {package}` first"
    # At this run level Debian installs servers without starting them.
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    install = ["apt-get", "install", "--yes", "--no-install-recommends", package]
    try:
        _run(install, env=quiet)
    except OSError:
        _run(["apt-get", "update"], env=quiet)
        _run(install, env=quiet)
    return None


def _run(command: Sequence[str], env: dict[str, str] | None = None) -> None:
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=600)
    if ended.returncode:
        last = (ended.stderr.strip() or ended.stdout.strip() or "no output").splitlines()[-1]
        raise OSError(f"`{' '.join(command)}` failed: {last}")


def _jars(name: str, dependencies: Sequence[str], *, alone: Sequence[str] = ()) -> str | None:
    """Copy jars and what they need to `.servers/NAME/jars`; those of `alone` without what they need."""
    folder = SERVERS / name
    if (folder / "complete").exists():
        return None
    if shutil.which("mvn") is None and (problem := _debian("maven")) is not None:
        return problem
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [_dependency(each, "org.apache.spark") for each in dependencies] + [_dependency(each) for each in alone]
    project = f"<groupId>semistream</groupId><artifactId>{name}</artifactId><version>1</version>"
    (folder / "pom.xml").write_text(
        f"<project><modelVersion>4.0.0</modelVersion>{project}<dependencies>{''.join(wanted)}</dependencies></project>\n"
    )
    copy = ["mvn", "--batch-mode", "--quiet", "dependency:copy-dependencies"]
    _run([*copy, "--file", str(folder / "pom.xml"), f"-DoutputDirectory={folder / 'jars'}"])
    (folder / "complete").touch()
    return None


def _dependency(coordinates: str, excluded: str = "*") -> str:
    group, artifact, version = coordinates.split(":")
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"<exclusions><exclusion><groupId>{excluded}</groupId><artifactId>*</artifactId></exclusion></exclusions>"
        f"</dependency>"
    )


# Spark has everything else that Delta needs.
_DELTA = [
    "io.delta:delta-spark_4.2_2.13:4.4.0",
    *(f"io.delta:{name}:4.4.0" for name in ("delta-storage", "delta-kernel-api", "delta-kernel-defaults")),
    "io.delta:delta-kernel-unitycatalog:4.4.0",
    *(f"io.unitycatalog:{name}:0.6.0" for name in ("unitycatalog-client", "unitycatalog-hadoop")),
]
_INSTALLERS: dict[str, Callable[[], str | None]] = {
    "postgresql": _postgresql,
    "mariadb": _mariadb,
    "s3": _s3,
    "browser": _browser,
    "kafka-broker": partial(_jars, "broker", ["org.apache.kafka:kafka_2.13:4.1.0", "org.slf4j:slf4j-simple:1.7.36"]),
    "kafka": partial(
        _jars,
        "kafka",
        ["org.apache.kafka:kafka-clients:3.9.2", "org.apache.commons:commons-pool2:2.12.0"],
        alone=[
            "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
            "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        ],
    ),
    # Of 4.2.0 there is none to be had; this one works with it.
    "avro": partial(_jars, "avro", [], alone=["org.apache.spark:spark-avro_2.13:4.1.1"]),
    "delta": partial(_jars, "delta", [], alone=_DELTA),
}

if __name__ == "__main__":
    sys.exit(main())
