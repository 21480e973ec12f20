"""How a command tells what it does; apart, because the help of commands must not load anything heavy."""

from __future__ import annotations

from enum import StrEnum


class LogFormat(StrEnum):
    """Sentences for people, or JSON for programs."""

    TEXT = "text"
    JSON = "json"
