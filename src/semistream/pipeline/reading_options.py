"""Reads the options that are passed on to a format of Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from semistream.pipeline import secrets
from semistream.pipeline.toml_table import TomlTable, flat_names


def options_of(table: TomlTable, refused: Callable[[str], str | None]) -> dict[str, str]:
    """Return the options of a source or a sink; `refused` says of a name why it cannot be set, or None if it can."""
    values = table.value("options") if "options" in table else {}
    if not isinstance(values, Mapping):
        raise table.wrong("options", f"must be a table, such as [{table.name.strip('[]')}.options]")
    options: dict[str, str] = {}
    for key, value in flat_names(values):
        where = f"options.{key}"
        reason = refused(key)
        if reason is not None:
            raise table.wrong(where, reason)
        secret = secrets.from_environment(value, f"{table.name} {where}")
        if secret is not None:
            options[key] = secret
        elif secrets.names_a_secret(key):
            raise table.wrong(where, 'is a secret: put it in an environment variable and write {env = "NAME"} here')
        elif isinstance(value, bool):
            options[key] = str(value).lower()
        elif isinstance(value, str | int | float):
            options[key] = str(value)  # with control characters: a separator may be one
        else:
            raise table.wrong(where, "must be a string, a number, true or false")
    return options
