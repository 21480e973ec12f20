"""How much memory the processes of one peer take, seen from outside."""

from __future__ import annotations

from pathlib import Path

from semistream_lab.python_workers import MARK

_PROCESSES = Path("/proc")


def peaks_of_workers(mark: str) -> list[int]:
    """Return the most memory that each worker with the mark has ever had, in bytes."""
    wanted = f"{MARK}={mark}".encode()
    peaks: list[int] = []
    for process in _PROCESSES.glob("[0-9]*"):
        try:
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                peaks += peaks_of(process)
        except OSError:  # ended meanwhile, or of another user
            continue
    return peaks


def peaks_of(process: Path) -> list[int]:
    """Return the most memory that a process has ever had, in bytes; empty where the system does not tell."""
    status = process / "status"
    lines = status.read_text().splitlines() if status.exists() else []
    return [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")]
