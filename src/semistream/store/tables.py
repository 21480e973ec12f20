"""Stored tables: opened by their address, built, merged and kept in order; the only way to the paged table inside."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from semistream.core.budget import format_bytes, parse_bytes
from semistream.core.errors import InvalidSettingError
from semistream.store import paged
from semistream.store.address import DATABASES, LOCAL, Address, NamesTable, TableAddress
from semistream.store.contract import StoredTable
from semistream.store.database.table import DatabaseTable
from semistream.store.paged import Progress
from semistream.store.paged.table import PagedTable
from semistream.store.paged.versions.vacuum import KEEP_FOR
from semistream.store.paged.write.build import check_page_bytes
from semistream.store.paged.write.coding import silent
from semistream.store.paged.write.heat import Use, use_in_column, use_of_codes, use_of_keys
from semistream.store.paged.write.row_sources import Source, open_source
from semistream.store.places.choice import OBJECT_STORES, place_of, tiered
from semistream.store.places.disk_tier import MIN_TIER_BYTES

__all__ = [
    "KEEP_FOR",
    "Address",
    "NamesTable",
    "Progress",
    "Source",
    "TableAddress",
    "Use",
    "build",
    "check_page_bytes",
    "checked_disk",
    "compact",
    "disk_of_each",
    "info",
    "merge",
    "open_source",
    "recluster",
    "restore",
    "silent",
    "table_at",
    "use_in_column",
    "use_of_codes",
    "use_of_keys",
    "vacuum",
    "verify",
]


def table_at(address: TableAddress, *, disk_bytes: int | None = None) -> StoredTable:
    """Return the table at an address; whether there is one shows when it is asked for something.

    This is the one point that decides by the scheme of an address which kind of table it is. What is read of it is kept
    in a tier on the local disk if that may take `disk_bytes`, which `checked_disk` has allowed.
    """
    found = Address.of(address)
    if found.scheme in DATABASES:
        return DatabaseTable(found.text)
    place = place_of(found)
    return PagedTable(place if disk_bytes is None else tiered(place, disk_bytes))


def checked_disk(address: TableAddress, disk: int | str | None) -> int | None:
    """Return what the tier of a table may take on the local disk; None if there is none."""
    if disk is None:
        return None
    disk_bytes = parse_bytes(disk, "disk")
    if disk_bytes < MIN_TIER_BYTES:
        raise InvalidSettingError(
            f"{format_bytes(disk_bytes)} of disk is too little for copies of a master table: give at least "
            f"{format_bytes(MIN_TIER_BYTES)}, or leave out `disk`."
        )
    scheme = Address.of(address).scheme
    if scheme in DATABASES:
        raise InvalidSettingError(
            "The rows of a database may change at any time, so that no copies of them are kept: leave out `disk`, or "
            "mirror the table."
        )
    if scheme == LOCAL:
        warnings.warn(
            "The master table is in a folder already, so that `disk` changes nothing: leave it out.", stacklevel=3
        )
        return None
    return disk_bytes


def disk_of_each(addresses: Sequence[TableAddress], disk: int | str | None) -> list[int | str | None]:
    """Return the `disk` of each of several tables, which is said for those in object stores alone if there are some."""
    far = [Address.of(address).scheme in OBJECT_STORES for address in addresses]
    return [disk if is_far or not any(far) else None for is_far in far]


def build(
    data: Any,
    address: TableAddress,
    key: str | Sequence[str],
    *,
    page_bytes: int | None = None,
    on_duplicate: str = "error",
    memory: int | str = "256MB",
    progress: Progress | None = None,
    mirror: Mapping[str, Any] | None = None,
    check: Callable[[], None] | None = None,
) -> int:
    """Write all rows of `data` as the next version of the table at an address and return its number.

    `mirror` says what the rows are a mirror of; `check` is called before the commit, and may refuse by raising.
    """
    return paged.build(
        data,
        _paged(address).place,
        key,
        page_bytes=page_bytes,
        on_duplicate=on_duplicate,
        memory=memory,
        progress=progress,
        mirror=mirror,
        check=check,
    )


def merge(
    address: TableAddress,
    upserts: Any = None,
    deletes: Any = None,
    *,
    memory: int | str = "256MB",
    progress: Progress | None = None,
) -> int:
    """Delete rows by key, then insert or replace rows by key, as the next version; return the number of the version."""
    return paged.merge(_paged(address).place, upserts, deletes, memory=memory, progress=progress)


def compact(address: TableAddress, *, progress: Progress | None = None) -> int:
    """Copy all pages of the current version into one file, as the next version; return its number."""
    return paged.compact(_paged(address).place, progress=progress)


def recluster(
    address: TableAddress,
    use: Use,
    *,
    index_memory: int | str | None = None,
    memory: int | str = "256MB",
    progress: Progress | None = None,
) -> int:
    """Write all rows in the order of their use as the next version; return its number."""
    return paged.recluster(_paged(address).place, use, index_memory=index_memory, memory=memory, progress=progress)


def restore(address: TableAddress, version: int) -> int:
    """Commit the content of a version under a new number and return it."""
    return paged.restore(_paged(address).place, version)


def verify(address: TableAddress, *, version: int | None = None) -> dict[str, int]:
    """Check every page of a version and return what was checked."""
    return paged.verify(_paged(address).place, version=version)


def info(address: TableAddress, *, version: int | None = None) -> dict[str, Any]:
    """Return what is known about a table without reading its pages."""
    return paged.info(_paged(address).place, version=version)


def vacuum(
    address: TableAddress,
    keep_versions: int = 1,
    *,
    keep_for: float | str = KEEP_FOR,
    also_keep: Iterable[int] = (),
    pins_older_than: float | str | None = None,
) -> dict[str, Any]:
    """Remove old versions and return what was freed, and for each version that stays the reasons."""
    return paged.vacuum(
        _paged(address).place, keep_versions, keep_for=keep_for, also_keep=also_keep, pins_older_than=pins_older_than
    )


def _paged(address: TableAddress) -> PagedTable:
    """Return a table that semistream itself writes."""
    return PagedTable(place_of(Address.of(address)))
