"""Reads the table [spark] of a pipeline's file: where Spark runs, and its settings."""

from __future__ import annotations

import re
from collections.abc import Mapping

from semistream.core.errors import InvalidSettingError
from semistream.pipeline import secrets
from semistream.pipeline.description import SparkDescription
from semistream.pipeline.toml_table import TomlTable, flat_names, has_control_characters

_MASTER_URL = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[[\d, ]+\]|yarn|(spark|k8s)://\S+")
_FIXED_SETTINGS = {
    "spark.master": "give master = … in [spark]",
    "spark.remote": "give master = … in [spark]",
    "spark.app.name": "the name in [pipeline] is used",
    "spark.sql.streaming.checkpointLocation": "give checkpoint in [pipeline]",
    "spark.sql.streaming.checkpointFileManagerClass": "semistream chooses it by the place of the checkpoint",
}


def read_spark(values: object) -> SparkDescription:
    """Return the master and the settings, or raise an error that names the key."""
    if not isinstance(values, Mapping):
        raise InvalidSettingError("[spark] must be a table of Spark settings.")
    rest = {key: value for key, value in values.items() if key != "master"}
    table = TomlTable("[spark]", {key: value for key, value in values.items() if key == "master"}, ("master",))
    master = table.text("master", "local[*]")
    if not _MASTER_URL.fullmatch(master):
        raise table.wrong("master", f"cannot be {master!r}: write local[*], local[4], yarn, spark://… or k8s://…")
    settings = {}
    for key, value in flat_names(rest):
        if not key.startswith("spark."):
            raise table.wrong(key, 'is not a Spark setting: write its full name in quotes, such as "spark.task.cpus"')
        if key in _FIXED_SETTINGS:
            raise table.wrong(key, f"cannot be set here: {_FIXED_SETTINGS[key]}")
        settings[key] = _setting(table, key, value)
    return SparkDescription(master, settings)


def _setting(table: TomlTable, key: str, value: object) -> str:
    secret = secrets.from_environment(value, f"[spark] {key}")
    if secret is not None:
        return secret
    if secrets.names_a_secret(key):
        raise table.wrong(key, 'is a secret: put it in an environment variable and write {env = "NAME"} here')
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float) and not has_control_characters(str(value)):
        return str(value)
    raise table.wrong(key, "must be a one-line string, a number, true or false")
