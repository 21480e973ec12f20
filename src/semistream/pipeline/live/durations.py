"""Lengths of time in few characters."""

from __future__ import annotations


def short_duration(seconds: float) -> str:
    """Return a length of time for people: 0.42 s, 12 s, 3 min 20 s, 5 h 12 min, 3 days 4 h."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    if whole < 86_400:
        minutes = whole % 3_600 // 60
        return f"{whole // 3_600} h" + (f" {minutes} min" if minutes else "")
    days, hours = whole // 86_400, whole % 86_400 // 3_600
    return f"{days} day{'s' if days > 1 else ''}" + (f" {hours} h" if hours else "")
