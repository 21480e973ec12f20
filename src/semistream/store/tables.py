"""Stored tables: opened by their address, built, merged and kept in order; the only way to the paged table inside."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol, TypeAlias

from semistream.core.errors import InvalidSettingError
from semistream.core.local_paths import local_path_of
from semistream.core.spark_frames import is_spark_frame
from semistream.store.contract import StoredTable
from semistream.store.paged import Progress, build, compact, info, merge, restore, vacuum, verify
from semistream.store.paged.table import PagedTable
from semistream.store.paged.versions.vacuum import KEEP_FOR
from semistream.store.paged.write.build import check_page_bytes
from semistream.store.paged.write.coding import silent
from semistream.store.paged.write.row_sources import Source, open_source

__all__ = [
    "KEEP_FOR",
    "NamesTable",
    "Progress",
    "Source",
    "TableAddress",
    "build",
    "check_page_bytes",
    "compact",
    "info",
    "local_path",
    "merge",
    "open_source",
    "restore",
    "silent",
    "table_at",
    "vacuum",
    "verify",
]


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
    """Return the path of the folder that an address means, such as a path or file:///…; else InvalidSettingError."""
    if _holds_rows(address):
        raise InvalidSettingError(
            f"A {type(address).__name__} is not a master table: make one of its rows with "
            f"MasterTable.build(data, path, key=...), and pass what that returns."
        )
    named = address if isinstance(address, str | os.PathLike) else getattr(address, "path", None)
    text = os.fspath(named) if isinstance(named, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        shown = repr(address)[:100]
        raise InvalidSettingError(f"{shown} is not the path of a master table: give the path of a directory.")
    return local_path_of(text, "Master tables")


def _holds_rows(address: object) -> bool:
    """Say whether somebody passes rows where a table is wanted."""
    if isinstance(address, list | tuple):
        return bool(address) and all(_holds_rows(part) for part in address)
    return is_spark_frame(address) or any(
        hasattr(type(address), name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "to_batches")
    )
