"""Where master tables are: addresses, which may be shown, sent to workers and compared."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable
from urllib.parse import parse_qsl, urlsplit

from semistream.core.errors import InvalidSettingError
from semistream.core.local_paths import local_path_of, scheme_of
from semistream.core.spark_frames import is_spark_frame

LOCAL = "file"
DATABASES = ("postgresql", "mysql")
SCHEMES = (LOCAL, "s3", "gs", "az", *DATABASES)
"""The kinds of addresses that a master table can have."""
_PASSWORDS = {"postgresql": "PGPASSWORD", "mysql": "MYSQL_PWD"}
"""The variables of the environment for passwords of databases."""
_SECRET = re.compile(r"(?i)(^|[?&;])[^=&;]*(passw|pwd|secret|token|key_id|credential|signature|sig=|sas)")


@dataclass(frozen=True)
class Address:
    """The place of a master table: the path of a folder, or scheme://….

    Holds text only, so that it can be pickled, and never a password: `of` refuses an address that has one.
    """

    text: str
    scheme: str = LOCAL

    @classmethod
    def of(cls, named: TableAddress) -> Address:
        """Return the address that a text, a path or whatever has an address means; else InvalidSettingError."""
        if isinstance(named, Address):
            return named
        if _holds_rows(named):
            raise InvalidSettingError(
                f"An object of type {type(named).__name__} is not a master table: build one from it with "
                f"MasterTable.build(data, path, key=...), and pass the result."
            )
        address = getattr(named, "address", None)
        if isinstance(address, Address):
            return address
        text = os.fspath(named) if isinstance(named, str | os.PathLike) else None
        if not isinstance(text, str) or not text or "\0" in text:
            shown = repr(named)[:100]
            raise InvalidSettingError(
                f"{shown} is not the address of a master table: give the path of a directory, or an address."
            )
        scheme = scheme_of(text) or LOCAL
        if scheme == LOCAL:
            return cls(str(local_path_of(text, "Master tables")))
        if scheme not in SCHEMES:
            raise not_there(scheme)
        return cls(_without_secrets(text, scheme), scheme)

    @property
    def name(self) -> str:
        """The last part, by which people tell tables apart."""
        if self.scheme in _PASSWORDS:
            return next((value for name, value in parse_qsl(urlsplit(self.text).query) if name == "table"), "table")
        return re.split(r"[?#]", self.text)[0].rstrip("/").rsplit("/", 1)[-1]

    @property
    def path(self) -> Path:
        """The folder on this machine; an address elsewhere has none."""
        if self.scheme != LOCAL:
            raise InvalidSettingError(f"{self.text} is not a folder of this machine: it has no path.")
        return Path(self.text)

    def absolute(self) -> Address:
        """Return the address that means the same in any working directory; symbolic links in it stay."""
        return Address(os.path.abspath(self.text)) if self.scheme == LOCAL else self  # noqa: PTH100

    def real(self) -> str:
        """Return what tells the place from all others, whatever links lead to it."""
        return os.path.realpath(self.text) if self.scheme == LOCAL else self.text

    def __str__(self) -> str:
        return self.text


@runtime_checkable
class NamesTable(Protocol):
    """What names a stored table by its address, as a MasterTable does."""

    @property
    def address(self) -> Address:
        """Where the table is."""


TableAddress: TypeAlias = Address | NamesTable | str | os.PathLike[str]


def not_there(scheme: str) -> InvalidSettingError:
    """Return the error that there are no master tables at addresses of this scheme; the rest may be a secret."""
    return InvalidSettingError(
        f"Master tables at {scheme}:// addresses are not supported: give the path of a directory, or an address of "
        f"s3://, gs://, az://, postgresql:// or mysql://."
    )


def only_read() -> InvalidSettingError:
    """Return the error that a table in a database is not written by us."""
    return InvalidSettingError(
        "A table in a database is only read: change it there, or copy it with MasterTable.build into a folder and keep "
        "the copy in order."
    )


def _without_secrets(text: str, scheme: str) -> str:
    """Return the address as it is kept, or refuse it without repeating it."""
    # A Path makes one slash of two.
    rest = re.split(r":/{1,2}", text, maxsplit=1)[-1]
    authority = rest.split("/", 1)[0]
    user = authority.rpartition("@")[0]
    if ":" in user or _SECRET.search(rest.partition("?")[2]):
        variable = f" as {_PASSWORDS[scheme]}" if scheme in _PASSWORDS else ""
        raise InvalidSettingError(
            f"An address of {scheme}:// must not hold a password or key: leave it out, and give it in the "
            f"environment{variable}."
        )
    return f"{scheme}://{rest}".rstrip("/")


def _holds_rows(named: object) -> bool:
    """Say whether somebody passes rows where a table is wanted."""
    if isinstance(named, list | tuple):
        return bool(named) and all(_holds_rows(part) for part in named)
    return is_spark_frame(named) or any(
        hasattr(type(named), name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "to_batches")
    )
