"""The byte budget that every component of a join draws from."""

from __future__ import annotations

import math
import operator
import re
from threading import Lock
from typing import SupportsIndex

from semistream.core.errors import BudgetExceededError, InvalidSettingError

_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
    # As Spark writes them, and with its meaning.
    "k": 2**10,
    "m": 2**20,
    "g": 2**30,
    "t": 2**40,
}


_MAX_BYTES = 2**48
"""What a process can address."""


def parse_bytes(size: int | str, of: str = "memory") -> int:
    """Return the bytes that `size` says, e.g. 64000000, "64MB" or "64 MiB".

    MB and its like are powers of 1000, MiB powers of 1024, and so are Spark's "64k", "512m", "1g" and "1t". Errors say
    what it is a size `of`.
    """
    if not isinstance(size, str):
        whole = _whole_number(size, of)
        if whole <= 0:
            raise InvalidSettingError(f"A {of} size must be positive, but {size} was given.")
        return _possible(whole, of)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", size)
    if not match or match[2].lower() not in _UNITS:
        raise InvalidSettingError(f"{size!r} is not a {of} size: write a number with KB, MB, GB, KiB, MiB or GiB.")
    if "." in match[1] and _UNITS[match[2].lower()] == 1:
        raise InvalidSettingError(f"{size!r} is not a whole number of bytes: add a unit, such as MB.")
    parsed = int(float(match[1]) * _UNITS[match[2].lower()])
    if parsed <= 0:
        raise InvalidSettingError(f"A {of} size must be positive, but {size!r} was given.")
    return _possible(parsed, of)


def _whole_number(size: object, of: str) -> int:
    if isinstance(size, float) and size.is_integer():
        return int(size)
    if isinstance(size, SupportsIndex) and not isinstance(size, bool):
        return operator.index(size)
    raise InvalidSettingError(f"{size!r} is not a {of} size: give a number of bytes, or a string such as '64MB'.")


def _possible(size_bytes: int, of: str) -> int:
    if size_bytes > _MAX_BYTES:
        raise InvalidSettingError(f"{format_bytes(size_bytes)} of {of} is more than any machine has: give less.")
    return size_bytes


def format_bytes(size: float) -> str:
    """Return `size` for people, e.g. "64.0 MB"."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return "1 byte" if int(size) == 1 else f"{int(size)} bytes"


def format_bytes_up(size: float) -> str:
    """Return `size` for people, rounded up, e.g. "65 MB" for what is enough."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= 100 * factor:
            return f"{math.ceil(size / factor)} {unit}"
        if size >= factor:
            return f"{math.ceil(size * 10 / factor) / 10:.1f} {unit}"
    return f"{math.ceil(size)} bytes"


class MemoryBudget:
    """Hands out a fixed number of bytes to named components and remembers who holds how many.

    A component must ask before it allocates, and keeps what it got. Safe to call from any thread.
    """

    def __init__(self, total_bytes: int | str) -> None:
        self.total_bytes = parse_bytes(total_bytes)
        self._held: dict[str, int] = {}
        self._used_bytes = 0
        self._lock = Lock()

    @property
    def used_bytes(self) -> int:
        """Bytes held by all components together."""
        return self._used_bytes

    @property
    def free_bytes(self) -> int:
        """Bytes that can still be reserved."""
        return self.total_bytes - self._used_bytes

    def reserve(self, component: str, size_bytes: int) -> None:
        """Take `size_bytes` for `component`, or raise BudgetExceededError and take nothing."""
        with self._lock:
            if self._used_bytes + size_bytes > self.total_bytes:
                raise BudgetExceededError(
                    f"The {component} needs {format_bytes(size_bytes)}, but only "
                    f"{format_bytes(self.free_bytes)} of the {format_bytes(self.total_bytes)} budget is free: give "
                    f"more memory."
                )
            self._held[component] = self._held.get(component, 0) + size_bytes
            self._used_bytes += size_bytes

    def by_component(self) -> dict[str, int]:
        """Return the bytes held by each component."""
        with self._lock:
            return dict(self._held)
