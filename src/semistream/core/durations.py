"""Times as people write them."""

from __future__ import annotations

import math
import re

from semistream.core.errors import InvalidSettingError

_UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86_400.0, "week": 604_800.0}
_SHORT = {"s": "second", "sec": "second", "min": "minute", "h": "hour", "d": "day", "w": "week"}


def parse_seconds(duration: float | str) -> float:
    """Return the seconds that `duration` says, e.g. 90, "90", "10 minutes" or "7 days"."""
    if isinstance(duration, (int, float)) and not isinstance(duration, bool):
        seconds = float(duration)
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", str(duration))
        unit = match[2].lower() if match else "?"
        unit = _SHORT.get(unit, unit.removesuffix("s") if len(unit) > 1 else unit) or "second"
        if match is None or unit not in _UNITS:
            raise InvalidSettingError(
                f"{duration!r} is not a duration: write a number of seconds, or a number with minutes, hours, days or "
                f"weeks."
            )
        seconds = float(match[1]) * _UNITS[unit]
    if not 0 <= seconds < math.inf:
        raise InvalidSettingError(f"{duration!r} is not a duration: it must not be negative.")
    return seconds


def format_seconds(seconds: float) -> str:
    """Return a time for people, in the largest unit that fits, e.g. "3 hours"."""
    for name, size in reversed(_UNITS.items()):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}" if count == 1 else f"{count} {name}s"
    return "0 seconds"
