"""Secrets in pipelines: never in the file, only by environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from semistream.core.errors import InvalidSettingError

_SECRET_KEY = re.compile(
    r"(?i)(pass(word|wd|phrase)?$|passw|secret|token|credential|api[._-]?key|access[._-]?key|private[._-]?key"
    r"|account[._-]?key|sas[._-]?key|jaas)"
)
_PASSWORD_IN_ADDRESS = re.compile(r"://[^/\s@]*:[^/\s@]+@")
# A column may be called password; what stands there is an expression or another column.
_TABLES_OF_COLUMNS = ("join", "transform")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def names_a_secret(key: str) -> bool:
    """Say whether a key looks as if its value were a secret."""
    return _SECRET_KEY.search(key) is not None


def holds_a_secret(text: str) -> bool:
    """Say whether a text has an address with a password in it."""
    return _PASSWORD_IN_ADDRESS.search(text) is not None


def refuse_plain_secrets(tables: Mapping[str, object]) -> None:
    """Raise an error if any key or value of a pipeline's file is a secret in plain text; it is not repeated."""
    for name, values in tables.items():
        _refuse(values, f"[{name}]", keys=name not in _TABLES_OF_COLUMNS)


def _refuse(values: object, where: str, *, keys: bool) -> None:
    if isinstance(values, Mapping):
        for key, value in values.items():
            if keys and isinstance(value, str) and names_a_secret(str(key)):
                raise InvalidSettingError(_refusal(f"{where} {key}"))
            _refuse(value, f"{where} {key}", keys=keys)
    elif isinstance(values, list):
        for value in values:
            _refuse(value, where, keys=keys)
    elif isinstance(values, str) and holds_a_secret(values):
        raise InvalidSettingError(_refusal(where))


def from_environment(value: object, where: str) -> str | None:
    """Return the text of the environment variable that {env = "NAME"} names, or None if `value` is nothing like it."""
    if not isinstance(value, Mapping) or set(value) != {"env"}:
        return None
    name = value["env"]
    if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
        raise InvalidSettingError(f'{where} must name an environment variable: write {{env = "NAME"}}.')
    secret = os.environ.get(name)
    if not secret:
        raise InvalidSettingError(f"{where} needs the environment variable {name}: set it before the start.")
    return secret


def _refusal(where: str) -> str:
    return (
        f"{where[:200]} has a secret in plain text: give it by an environment variable, "
        'with {env = "NAME"} in its place.'
    )
