"""What one operation costs on a given machine: the constants of the papers' cost models."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from semistream.core.errors import InvalidSettingError


@dataclass(slots=True)
class Operations:
    """How often each operation of the cost models was done."""

    seeks: float = 0
    """Requests at a random place; of those whose latencies overlap only one is counted."""
    continuations: float = 0
    """Requests that continue where the one before ended."""
    bytes_read: float = 0
    """Bytes that came one after the other; where each request has a bandwidth of its own, of those that came side by
    side only the bytes of one are counted."""
    probes: float = 0
    outputs: float = 0
    removals: float = 0
    takes: float = 0
    appends: float = 0
    frequency_checks: float = 0
    hand_overs: float = 0

    def add(self, other: Operations) -> None:
        """Count the operations of `other`, too."""
        for name in _OPERATION_NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def since(self, earlier: Operations) -> Operations:
        """Return what was counted after `earlier`."""
        return Operations(*(getattr(self, name) - getattr(earlier, name) for name in _OPERATION_NAMES))


_OPERATION_NAMES = tuple(field.name for field in fields(Operations))


@dataclass(frozen=True)
class CostProfile:
    """Seconds per operation of one machine and store; the papers' symbols stand beside the names."""

    name: str
    seek_seconds: float
    """Latency of one request at a random place."""
    request_seconds: float
    """Latency of one request that continues where the one before ended."""
    bytes_per_second: float
    """Bandwidth of all requests in flight together, or of each of them."""
    probe_seconds: float  # c_H
    output_seconds: float  # c_O
    remove_seconds: float  # c_E
    take_seconds: float  # c_S
    append_seconds: float  # c_A
    frequency_seconds: float  # c_F
    hand_over_seconds: float  # c_AI
    max_in_flight: int = 1
    """How many requests can be under way at one time, so that their latencies overlap."""
    shares_bandwidth: bool = True
    """Whether requests in flight share the bandwidth; if not, each has all of it, as if it came from a disk of its own.
    Only reads of the join are charged so; plans of reads that are made by cost take the bandwidth as shared."""
    round_seconds: float = 0.0
    """What a round of the loop takes beside its operations: calls between its parts, book-keeping. For predictions of
    real time only; the papers have no such cost, and the model clock does not charge it."""
    answer_seconds: float = 0.0
    """The same for each pinned page group that answers tuples in a round."""
    row_seconds: float | None = None
    """What a row of a page costs after its read, if that is not a look-up (c_H) as in the papers: this engine looks the
    waiting tuples up in the page instead. For predictions of real time only."""

    @property
    def page_row_seconds(self) -> float:
        """What a row of a page costs after its read."""
        return self.probe_seconds if self.row_seconds is None else self.row_seconds

    def read_seconds(self, size_bytes: int, *, sequential: bool = False) -> float:
        """Return the time of one request alone: c_IO(size)."""
        latency = self.request_seconds if sequential else self.seek_seconds
        return latency + size_bytes / self.bytes_per_second

    def seconds(self, operations: Operations) -> float:
        """Return what operations take that are done one after the other."""
        return (
            operations.seeks * self.seek_seconds
            + operations.continuations * self.request_seconds
            + operations.bytes_read / self.bytes_per_second
            + operations.probes * self.probe_seconds
            + operations.outputs * self.output_seconds
            + operations.removals * self.remove_seconds
            + operations.takes * self.take_seconds
            + operations.appends * self.append_seconds
            + operations.frequency_checks * self.frequency_seconds
            + operations.hand_overs * self.hand_over_seconds
        )


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
    max_in_flight=2,
)
"""Stands for the papers' machine; why these values: docs/decisions/003-the-papers-machine.md."""

PAPERS_SSD = CostProfile(
    name="papers-ssd",
    seek_seconds=0.25e-3,
    request_seconds=0.15e-3,
    bytes_per_second=30e6,
    probe_seconds=0.33 * _MICROSECOND,
    output_seconds=0.5 * _MICROSECOND,
    remove_seconds=0.33 * _MICROSECOND,
    take_seconds=0.17 * _MICROSECOND,
    append_seconds=0.33 * _MICROSECOND,
    frequency_seconds=0.033 * _MICROSECOND,
    hand_over_seconds=0.17 * _MICROSECOND,
    max_in_flight=2,
)
"""Stands for an i5 with an SSD, the machine of one paper: docs/decisions/040-frequent-pages-machine.md."""

PAPERS_CONNECTIONS = replace(PAPERS, name="papers-connections", shares_bandwidth=False)
"""The same machine if each of two connections brings its bytes as fast as one alone; why:
docs/decisions/041-own-machines.md."""

_TODAY_CPU: dict[str, Any] = {
    "probe_seconds": 15e-9,
    "output_seconds": 25e-9,
    "remove_seconds": 5e-9,
    "take_seconds": 5e-9,
    "append_seconds": 15e-9,
    "frequency_seconds": 2e-9,
    "hand_over_seconds": 5e-9,
}

PAPERS_SLOW_PROCESSOR = replace(
    PAPERS, name="papers-slow-processor", **{name: 28 * getattr(PAPERS, name) for name in _TODAY_CPU}
)
"""The same machine with so slow a processor that P-CACHEJOIN serves what the axis of its paper's Figure 3 says, 13,200
tuples a second: docs/decisions/041-own-machines.md."""

SSD = CostProfile(
    "ssd", seek_seconds=100e-6, request_seconds=20e-6, bytes_per_second=3e9, max_in_flight=4, **_TODAY_CPU
)
"""A local solid-state disk read past the page cache."""

REMOTE = CostProfile(
    "remote", seek_seconds=5e-3, request_seconds=5e-3, bytes_per_second=200e6, max_in_flight=16, **_TODAY_CPU
)
"""A database or object store some milliseconds away."""

FAR_REMOTE = replace(REMOTE, name="remote-20ms", seek_seconds=20e-3, request_seconds=20e-3)
"""An object store as most are seen from a cluster: four times as far away."""

NO_COSTS = CostProfile("none", 0, 0, float("inf"), 0, 0, 0, 0, 0, 0, 0)
"""For the wall clock, where work takes its own time."""

PROFILES = {
    profile.name: profile
    for profile in (PAPERS, PAPERS_CONNECTIONS, PAPERS_SLOW_PROCESSOR, PAPERS_SSD, SSD, REMOTE, FAR_REMOTE)
}


def profile_named(name: str) -> CostProfile:
    """Return the shipped profile called `name`."""
    try:
        return PROFILES[name]
    except KeyError:
        known = ", ".join(sorted(PROFILES))
        raise InvalidSettingError(f"There is no cost profile {name!r}: choose one of {known}.") from None
