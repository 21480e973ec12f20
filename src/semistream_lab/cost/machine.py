"""The machine that something was measured on."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

_UNKNOWN = "unknown"


@dataclass(frozen=True)
class Machine:
    """What a measurement depends on, without anything that tells whose machine it is."""

    cpu: str
    cores: int
    file_system: str


def this_machine(place: Path) -> Machine:
    """Return this machine, with the kind of file system that `place` is on."""
    return Machine(_cpu(), len(os.sched_getaffinity(0)), _file_system(place))


def _cpu() -> str:
    for line in _lines(Path("/proc/cpuinfo")):
        name, _, value = line.partition(":")
        if name.strip() == "model name" and value.strip():
            return value.strip()
    return platform.machine() or _UNKNOWN


def _file_system(place: Path) -> str:
    """Return the kind of the innermost mount that holds the place."""
    resolved = place.resolve()
    kind, length = _UNKNOWN, -1
    for line in _lines(Path("/proc/self/mountinfo")):
        mount, _, source = line.partition(" - ")
        fields = mount.split()
        if len(fields) < 5 or not source:
            continue
        point = fields[4].replace("\\040", " ")
        if len(point) >= length and resolved.is_relative_to(point):
            kind, length = source.split()[0], len(point)
    return kind


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
