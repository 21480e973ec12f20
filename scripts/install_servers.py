"""Installs the servers that tests start on loopback, as far as they are missing and can be had here.

Run it with `make servers`. Says for each server whether it is there; ends with 1 if one is missing and `CI` is "true".
Debian packages need root; everything else goes into `.servers/` beside the sources.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SERVERS = ROOT / ".servers"
_MOTO = "moto[server]==5.2.5"


def main() -> int:
    """Install what is missing and return the exit code."""
    missing = []
    for name, install in _INSTALLERS.items():
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


_INSTALLERS: dict[str, Callable[[], str | None]] = {
    "PostgreSQL": _postgresql,
    "MariaDB": _mariadb,
    "S3 (moto)": _s3,
}

if __name__ == "__main__":
    sys.exit(main())
