"""What one operation costs on a given machine: the constants of the papers' cost models."""

from __future__ import annotations

from dataclasses import dataclass

from semistream.core.errors import InvalidSettingError


@dataclass(frozen=True)
class CostProfile:
    """Seconds per operation of one machine and store; the papers' symbols stand beside the names."""

    name: str
    seek_seconds: float
    """Latency of one request at a random place."""
    request_seconds: float
    """Latency of one request that continues where the one before ended."""
    bytes_per_second: float
    """Bandwidth, shared by all requests in flight."""
    probe_seconds: float  # c_H
    output_seconds: float  # c_O
    remove_seconds: float  # c_E
    take_seconds: float  # c_S
    append_seconds: float  # c_A
    frequency_seconds: float  # c_F
    hand_over_seconds: float  # c_AI
    most_in_flight: int = 1
    """How many requests can be under way at one time, so that their latencies overlap."""

    def read_seconds(self, size_bytes: int, *, sequential: bool = False) -> float:
        """Return the time of one request alone: c_IO(size)."""
        latency = self.request_seconds if sequential else self.seek_seconds
        return latency + size_bytes / self.bytes_per_second


_MICROSECOND = 1e-6

PAPERS = CostProfile(
    name="papers",
    seek_seconds=5.5e-3,
    request_seconds=0.5e-3,
    bytes_per_second=10e6,
    probe_seconds=1.0 * _MICROSECOND,
    output_seconds=1.5 * _MICROSECOND,
    remove_seconds=1.0 * _MICROSECOND,
    take_seconds=0.5 * _MICROSECOND,
    append_seconds=1.0 * _MICROSECOND,
    frequency_seconds=0.1 * _MICROSECOND,
    hand_over_seconds=0.5 * _MICROSECOND,
)
"""Stands for the papers' machine; why these values: docs/decisions/003-the-papers-machine.md."""

_TODAY_CPU = {
    "probe_seconds": 15e-9,
    "output_seconds": 25e-9,
    "remove_seconds": 5e-9,
    "take_seconds": 5e-9,
    "append_seconds": 15e-9,
    "frequency_seconds": 2e-9,
    "hand_over_seconds": 5e-9,
}

SSD = CostProfile(
    "ssd", seek_seconds=100e-6, request_seconds=20e-6, bytes_per_second=3e9, most_in_flight=4, **_TODAY_CPU
)
"""A local solid-state disk read past the page cache."""

REMOTE = CostProfile(
    "remote", seek_seconds=5e-3, request_seconds=5e-3, bytes_per_second=200e6, most_in_flight=16, **_TODAY_CPU
)
"""A database or object store some milliseconds away."""

NO_COSTS = CostProfile("none", 0, 0, float("inf"), 0, 0, 0, 0, 0, 0, 0)
"""For the wall clock, where work takes its own time."""

PROFILES = {profile.name: profile for profile in (PAPERS, SSD, REMOTE)}


def profile_named(name: str) -> CostProfile:
    """Return the shipped profile called `name`."""
    try:
        return PROFILES[name]
    except KeyError:
        known = ", ".join(sorted(PROFILES))
        raise InvalidSettingError(f"There is no cost profile {name!r}: choose one of {known}.") from None
