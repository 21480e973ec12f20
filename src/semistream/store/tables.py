"""Stored tables: opened by their address, built, merged and kept in order; the only way to the paged table inside."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Protocol, TypeAlias

from semistream.core.errors import InvalidSettingError
from semistream.store.contract import StoredTable
from semistream.store.paged import Progress, build, compact, info, merge, restore, vacuum, verify
from semistream.store.paged.table import PagedTable
from semistream.store.paged.versions.vacuum import KEEP_FOR
from semistream.store.paged.write.build import check_page_bytes
from semistream.store.paged.write.coding import silent

__all__ = [
    "KEEP_FOR",
    "NamesTable",
    "Progress",
    "TableAddress",
    "build",
    "check_page_bytes",
    "compact",
    "info",
    "local_path",
    "merge",
    "restore",
    "silent",
    "table_at",
    "vacuum",
    "verify",
]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class NamesTable(Protocol):
    """What names a stored table by its path, as a MasterTable does."""

    @property
    def path(self) -> Path:
        """Where the table is."""


TableAddress: TypeAlias = NamesTable | str | os.PathLike[str]


def table_at(address: TableAddress) -> StoredTable:
    """Return the table at an address; whether there is one shows when it is asked for something."""
    return PagedTable(local_path(address))


def local_path(address: TableAddress) -> Path:
    """Return the path of the folder that an address means, or raise InvalidSettingError."""
    named = address if isinstance(address, str | os.PathLike) else getattr(address, "path", None)
    text = os.fspath(named) if named is not None else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidSettingError(f"{address!r} is not the path of a master table: give the path of a directory.")
    match = _SCHEME.match(text)
    if match is None:
        return Path(text)
    # The rest of the address may hold a password, so that only its scheme is named.
    raise InvalidSettingError(
        f"Master tables at {match[1]}:// addresses are not supported yet: give the path of a directory."
    )
