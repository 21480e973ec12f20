"""Secrets in pipelines: never in the file, only by environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from semistream.core.errors import InvalidSettingError

_SECRET_WORD = (
    r"pass(word|wd|phrase)?$|passw|pwd|secret|token|credential|api[._-]?key|access[._-]?key|private[._-]?key"
    r"|account[._-]?key|(^|[._-])sas([._-]|$)|jaas"
)
_SECRET_KEY = re.compile(rf"(?i)({_SECRET_WORD})")
# What programs read from their environment has short names: STORAGE_KEY, DB_PASS, BLOB_SAS.
_ENVIRONMENT = re.compile(r"spark\.(executorEnv|yarn\.appMasterEnv|kubernetes\.driverEnv)\.(.+)")
_SECRET_VARIABLE = re.compile(r"(?i)(^|_)(key|sas|auth|pin|pw)$")
# The name of a setting within a text, as in -Djavax.net.ssl.keyStorePassword=…, ?password=… or AccountKey=….
_SETTING = re.compile(r"([\w.-]+)\s*=\s*[^\s;&]")
# The signature of an address that gives access to whoever has it: Azure, Amazon, Google.
_SIGNATURE = re.compile(r"(?i)(?:^|[?&])(sig|signature|x-amz-signature|x-goog-signature)=")
_PASSWORD_IN_ADDRESS = re.compile(r"([A-Za-z][\w+.-]*)://([^\s/@:]*):([^\s@]+)@")
_PASSWORD_OF_ORACLE = re.compile(r"(?i)jdbc:oracle:\w+:[^\s/@]+/[^\s@]+@")
_PORT_AND_PATH = re.compile(r"\d{1,5}/")
_WITH_PORTS = ("hdfs", "webhdfs", "http", "https", "spark", "k8s")
# A column may be called password; what stands there is an expression or another column.
_TABLES_OF_COLUMNS = ("prepare", "transform")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


REDACTION = r"(?i)secret|passw|passphrase|pwd|token|credential|jaas|(api|access|private|account)[._-]?key"
"""What Spark must not show the values of, in plans and settings: its own words and ours."""


def names_a_secret(key: str) -> bool:
    """Say whether a key looks as if its value were a secret."""
    variable = _ENVIRONMENT.fullmatch(key)
    if variable is not None and _SECRET_VARIABLE.search(variable[2]):
        return True
    return _SECRET_KEY.search(key) is not None


def holds_a_secret(text: str) -> bool:
    """Say whether a text has a secret in it: an address with a password or signature, or a setting that names one."""
    if _SIGNATURE.search(text) or _PASSWORD_OF_ORACLE.search(text):
        return True
    for scheme, _, password in _PASSWORD_IN_ADDRESS.findall(text):
        # In hdfs://node:8020/a@b the number is a port; elsewhere a password may begin like one.
        if not (scheme.lower() in _WITH_PORTS and _PORT_AND_PATH.match(password)):
            return True
    return False


def sets_a_secret(text: str) -> bool:
    """Say whether a text sets something that looks like a secret, as options of Java and addresses of JDBC do."""
    return any(names_a_secret(name) for name in _SETTING.findall(text))


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
    elif isinstance(values, str) and (holds_a_secret(values) or (keys and sets_a_secret(values))):
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
        raise InvalidSettingError(f"{where} needs the environment variable {name}: set it before you start.")
    return secret


def _refusal(where: str) -> str:
    return (
        f"{where[:200]} has a secret in plain text: give it by an environment variable, "
        'with {env = "NAME"} in its place.'
    )
