"""The address of a table in a database, as users write it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from semistream.core.budget import parse_bytes
from semistream.core.durations import parse_seconds
from semistream.core.errors import InvalidSettingError

PASSWORDS = {"postgresql": "PGPASSWORD", "mysql": "MYSQL_PWD"}
"""The schemes of addresses of tables in databases, and the variables of the environment for their passwords."""
_PORTS = {"postgresql": 5432, "mysql": 3306}
_TLS_MODES = ("disable", "require", "verify-ca", "verify-full")
_OPTIONS = (
    "table",
    "schema",
    "key",
    "host",
    "sslmode",
    "sslrootcert",
    "connect_timeout",
    "statement_timeout",
    "retry_for",
    "cache_for",
    "page_bytes",
    "row_bytes",
    "connections",
)
_MIN_CACHE_SECONDS = 1.0
_MAX_CONNECTIONS = 16
_LIKE = "postgresql://user@host/database?table=products&key=product_id"


@dataclass(frozen=True)
class DatabaseAddress:
    """Where a table in a database is and how it is read; never holds a password."""

    kind: str
    """postgresql or mysql."""
    user: str | None
    host: str
    """A name, an IP address, or the folder of a socket."""
    port: int
    database: str
    schema: str | None
    """What qualifies the name of the table, if anything does."""
    table: str
    key: tuple[str, ...]
    sslmode: str
    """disable, require, verify-ca or verify-full."""
    sslrootcert: str | None = None
    connect_seconds: float = 5.0
    statement_seconds: float = 30.0
    retry_seconds: float = 120.0
    cache_seconds: float = 60.0
    page_bytes: int = 8192
    row_bytes: int | None = None
    """What a row is taken to have; None if a sample shall tell."""
    connections: int = 2
    """How many queries of one look-up may be under way at once."""

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine, so that nobody can listen on the way."""
        return is_local(self.host)

    @property
    def server(self) -> str:
        """The server and its database, for people."""
        at = self.host if self.host.startswith("/") else f"{self.host}:{self.port}"
        return f"{self.kind}://{at}/{self.database}"

    @property
    def table_name(self) -> str:
        """The name of the table, for people."""
        return self.table if self.schema is None else f"{self.schema}.{self.table}"


def parse_address(text: str, *, needs_key: bool = True) -> DatabaseAddress:
    """Return what an address says; a wrong one is an error that does not repeat it, since it may hold a password."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise InvalidSettingError(f"The address of the database cannot be read: write it like {_LIKE}.") from None
    kind = parts.scheme.lower()
    if kind not in PASSWORDS:
        raise InvalidSettingError(
            f"The address of a database must begin with postgresql:// or mysql://, as in {_LIKE}."
        )
    variable = PASSWORDS[kind]
    if parts.password is not None:
        raise InvalidSettingError(
            f"The address of a database must not hold a password: set the environment variable {variable} instead."
        )
    options = _options(parts.query, variable)
    host = options.get("host") or unquote(parts.hostname or "") or "localhost"
    database = unquote(parts.path.removeprefix("/"))
    if not database or "/" in database or parts.fragment:
        raise InvalidSettingError(
            f"The address of a database must name one database after its host: write it like {_LIKE}."
        )
    schema, table = _table(options)
    return DatabaseAddress(
        kind=kind,
        user=unquote(parts.username) if parts.username else None,
        host=host,
        port=port or _PORTS[kind],
        database=database,
        schema=schema,
        table=table,
        key=_key(parts.query, needs_key),
        sslmode=_tls_mode(options, host),
        sslrootcert=options.get("sslrootcert"),
        **_sizes_and_times(options),
    )


def is_local(host: str) -> bool:
    """Say whether a host is this machine."""
    if host.startswith("/") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _options(query: str, variable: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if "password" in name.lower() or name.lower() in ("pwd", "passfile"):
            raise InvalidSettingError(
                f"The address of a database must not hold a password: set the environment variable {variable} instead."
            )
        if name not in _OPTIONS:
            raise InvalidSettingError(
                f"The address of a database has the unknown option {name[:40]!r}: it may have {', '.join(_OPTIONS)}."
            )
        if name in options and name != "key":
            raise InvalidSettingError(f"The address of a database has the option {name} twice: give it once.")
        if not value or "\0" in value:
            raise InvalidSettingError(f"The option {name} in the address of a database has no value: give it one.")
        options[name] = value
    return options


def _table(options: Mapping[str, str]) -> tuple[str | None, str]:
    name = options.get("table")
    if name is None:
        raise InvalidSettingError(f"The address of a database must name its table: write it like {_LIKE}.")
    if "schema" in options:
        return options["schema"], name
    parts = name.split(".")
    if len(parts) > 2 or not all(parts):
        raise InvalidSettingError(
            f"The table {name!r} has dots in its name: write table=NAME or table=SCHEMA.NAME, "
            f"or give the schema as a separate option, as in schema=SCHEMA&table=NAME."
        )
    return (parts[0], parts[1]) if len(parts) == 2 else (None, name)


def _key(query: str, needs_key: bool) -> tuple[str, ...]:
    key = tuple(value for name, value in parse_qsl(query) if name == "key")
    if needs_key and not key:
        raise InvalidSettingError(f"The address of a database must name the key of its table: write it like {_LIKE}.")
    return key


def _tls_mode(options: Mapping[str, str], host: str) -> str:
    mode = options.get("sslmode")
    if mode is None:
        return "disable" if is_local(host) else "verify-full"
    if mode not in _TLS_MODES:
        raise InvalidSettingError(f"sslmode is {mode!r}: choose one of {', '.join(_TLS_MODES)}.")
    return mode


def _sizes_and_times(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that the options set; what they leave out keeps its default."""
    chosen: dict[str, Any] = {}
    for option, field in (
        ("connect_timeout", "connect_seconds"),
        ("statement_timeout", "statement_seconds"),
        ("retry_for", "retry_seconds"),
        ("cache_for", "cache_seconds"),
    ):
        if option in options:
            chosen[field] = parse_seconds(options[option])
            if option != "retry_for" and not chosen[field]:
                raise InvalidSettingError(f"{option} is 0: give a longer time.")
    for option in ("page_bytes", "row_bytes"):
        if option in options:
            chosen[option] = parse_bytes(options[option])
    if "connections" in options:
        number = options["connections"]
        if not (number.isascii() and number.isdigit() and 1 <= int(number) <= _MAX_CONNECTIONS):
            raise InvalidSettingError(f"connections is {number[:40]!r}: give a number from 1 to {_MAX_CONNECTIONS}.")
        chosen["connections"] = int(number)
    if chosen.get("cache_seconds", _MIN_CACHE_SECONDS) < _MIN_CACHE_SECONDS:
        raise InvalidSettingError("cache_for is shorter than a second: give at least 1 second.")
    return chosen
