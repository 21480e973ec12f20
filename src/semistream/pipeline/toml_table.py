"""Reads tables of a pipeline's file key by key, with errors that name table and key."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

from semistream.core.errors import InvalidSettingError

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NEW_NAME = re.compile(r"[^\W\d]\w{0,127}")
_INTERVAL = re.compile(r"[0-9]{1,6} (millisecond|second|minute|hour|day|week)s?")
_LARGEST = 2**31 - 1
"""The largest number that Spark takes everywhere."""


class TomlTable:
    """A table of the file, such as [source]; a key that it does not know is refused when it is made."""

    def __init__(self, name: str, values: object, known: Iterable[str]) -> None:
        self.name = name
        if not isinstance(values, Mapping):
            raise InvalidSettingError(f"{name} must be a table: write it as {name} with its keys below.")
        self._values: Mapping[str, object] = values
        for key in values:
            if key not in (names := tuple(known)):
                raise self.wrong(key, f"is not a key of this table: {suggestion(key, names)}")

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def wrong(self, key: str, what: str) -> InvalidSettingError:
        """Return an error about a key of this table; `what` goes on after the key."""
        return InvalidSettingError(f"{self.name} {_shown(key)} {what if what.endswith(('.', '?')) else what + '.'}")

    def unexpected(self, key: str, expected: str) -> InvalidSettingError:
        """Return an error about the value of a key, which must be something else."""
        value = self._values[key]
        found = "a table of other values" if isinstance(value, Mapping) else _shown_value(value)
        return self.wrong(key, f"must be {expected}, but is {found}")

    def required(self, key: str) -> object:
        """Return the value of a key that must be there."""
        if key not in self._values:
            raise self.wrong(key, f"is missing: add {key} = … to {self.name}")
        return self._values[key]

    def value(self, key: str) -> object:
        """Return the value of a key as it stands in the file, or None."""
        return self._values.get(key)

    def text(self, key: str, default: str | None = None, *, choices: Sequence[str] = ()) -> str:
        """Return a text without control characters; required unless it has a default."""
        if key not in self._values and default is not None:
            return default
        value = self.required(key)
        if not isinstance(value, str) or not value.strip():
            raise self.unexpected(key, "a non-empty string in quotes")
        if _CONTROL.search(value):
            raise self.wrong(key, "has a line break or another control character: write it on one line")
        if choices and value not in choices:
            raise self.wrong(key, f"cannot be {value!r}: {suggestion(value, choices)}")
        return value

    def optional_text(self, key: str) -> str | None:
        """Return a text, or None if the key is not there."""
        return self.text(key) if key in self._values else None

    def flag(self, key: str) -> bool:
        """Return true or false; false if the key is not there."""
        value = self._values.get(key, False)
        if not isinstance(value, bool):
            raise self.unexpected(key, "true or false")
        return value

    def whole_number(self, key: str, *, minimum: int) -> int | None:
        """Return a whole number, or None if the key is not there."""
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
            raise self.unexpected(key, f"a whole number of at least {minimum}")
        if value > _LARGEST:
            raise self.unexpected(key, f"a whole number of at most {_LARGEST}")
        return value

    def names(self, key: str) -> tuple[str, ...]:
        """Return a list of different column names that is not empty."""
        value = self.required(key)
        if not isinstance(value, list) or not value or not all(isinstance(name, str) and name for name in value):
            raise self.unexpected(key, 'a list of column names, such as ["price", "supplier_id"]')
        if len(set(value)) < len(value):
            raise self.wrong(key, "names a column twice: name each once")
        for name in value:
            self.check_name(key, name)
        return tuple(value)

    def optional_names(self, key: str) -> tuple[str, ...] | None:
        """Return a list of column names, or None if the key is not there."""
        return self.names(key) if key in self._values else None

    def texts_by_name(self, key: str) -> dict[str, str]:
        """Return a table of texts that is not empty, such as {total = "quantity * price"}."""
        value = self.required(key)
        if (
            not isinstance(value, Mapping)
            or not value
            or not all(isinstance(text, str) and text.strip() for text in value.values())
        ):
            raise self.unexpected(key, 'a table of strings in quotes, such as {new = "old"}')
        return dict(value)

    def interval(self, key: str) -> str:
        """Return a length of time, such as "10 minutes"."""
        text = self.text(key)
        if not _INTERVAL.fullmatch(text):
            raise self.wrong(key, f'cannot be {text!r}: write a length of time, such as "10 seconds" or "5 minutes"')
        return text

    def check_name(self, key: str, name: str) -> None:
        """Raise an error if a column name holds what belongs into no name."""
        if _CONTROL.search(name) or any(mark in name for mark in ";`\"'") or "--" in name or "/*" in name:
            raise self.wrong(key, f"has {name!r}, which is not a column name: give a plain name")

    def check_new_name(self, key: str, name: str) -> None:
        """Raise an error unless a column that the pipeline makes has a plain name."""
        if not _NEW_NAME.fullmatch(name):
            raise self.wrong(key, f"makes a column {name!r}: use only letters, digits and underscores")


def flat_names(values: Mapping[str, object], prefix: str = "") -> list[tuple[str, object]]:
    """Return settings under their whole names, since TOML makes tables of names with dots; {env = …} is a value."""
    settings: list[tuple[str, object]] = []
    for key, value in values.items():
        if isinstance(value, Mapping) and set(value) != {"env"}:
            settings.extend(flat_names(value, f"{prefix}{key}."))
        else:
            settings.append((f"{prefix}{key}", value))
    return settings


def has_control_characters(text: str) -> bool:
    """Say whether a text has line breaks or the like."""
    return _CONTROL.search(text) is not None


def suggestion(wrong: str, right: Sequence[str]) -> str:
    """Return what to write in the place of a wrong word."""
    near = difflib.get_close_matches(wrong, right, n=1)
    return f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(right)}."


def _shown_value(value: object) -> str:
    """Return a value as it may be shown; what is long is only named by its kind."""
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    return shown if len(shown) <= 60 else f"a {'list' if isinstance(value, list) else 'longer value'}"


def _shown(key: str) -> str:
    """Return a key as it may be shown; hostile ones are cut and escaped."""
    return key if re.fullmatch(r"[\w.\[\]-]{1,100}", key) else repr(key[:100])
