"""Nodes on one machine that share no folder: each is a mount namespace in which only its own folder can be written.

Everything else is read-only for a process of a node, and the folders of other nodes are empty and closed, so that two
nodes can exchange nothing but messages. It needs `unshare` of util-linux, and root or user namespaces.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_ENTER = """
set -e
own=$1; shift
mount --bind "$own" "$own"
for other in "${own%/*}"/*/; do
    [ "${other%/}" = "$own" ] || mount -t tmpfs -o size=4k,mode=0500 none "${other%/}"
done
mount -t tmpfs none /dev/shm
while read -r _ escaped kind options _; do
    point=$(printf %b "$escaped")
    case "$kind:$point:$options" in
        proc:*|sysfs:*|cgroup*|dev*|mqueue:*|*:/dev/shm:*|*:"$own":*|*:ro,*) ;;
        *) mount -o remount,bind,ro "$point" ;;
    esac
done < /proc/self/mounts
cd "$own"
exec "$@"
"""


@dataclass(frozen=True)
class Node:
    """A folder that stands for a machine; all nodes lie side by side and must be made before one is entered."""

    folder: Path
    host: str
    """An address of loopback: Spark reads files of executors that are on the same host."""

    @classmethod
    def made(cls, folder: Path, host: str) -> Node:
        """Make the folder, with a home, a place for temporary files, and a copy of what Numba has compiled."""
        for name in ("home", "tmp", "local"):
            (folder / name).mkdir(parents=True)
        compiled = os.environ.get("NUMBA_CACHE_DIR")
        if compiled and Path(compiled).is_dir():
            shutil.copytree(compiled, folder / "home" / "kernels")
        return cls(folder, host)

    def entered(self, command: list[str]) -> list[str]:
        """Return the command that runs a command on this node."""
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        return [
            *["unshare", *user, "--mount", "--propagation", "private"],
            *["sh", "-c", _ENTER, "node", str(self.folder), *command],
        ]

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a process on this node: whatever it keeps lies in its own folder."""
        return {
            **base,
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "SPARK_LOCAL_IP": self.host,
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "NUMBA_CACHE_DIR": str(self.folder / "home" / "kernels"),
        }

    @property
    def java_options(self) -> str:
        """What Java needs besides."""
        return f"-Djava.io.tmpdir={self.folder / 'tmp'} -XX:-UsePerfData"


def why_not() -> str | None:
    """Return why there can be no separate nodes here, as one sentence; None if there can."""
    if shutil.which("unshare") is None:
        return "Separate nodes need the command unshare: install util-linux."
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    tried = subprocess.run(["unshare", *user, "--mount", "true"], capture_output=True, check=False)
    return "Separate nodes need root or user namespaces: allow them, or run as root." if tried.returncode else None
