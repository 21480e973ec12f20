"""The master table as users name it: by its place."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from semistream.core.errors import InvalidSettingError
from semistream.core.spark_frames import is_spark_frame
from semistream.store import tables
from semistream.store.contract import MasterStore
from semistream.store.tables import Progress


class MasterTable:
    """A master table at a path, also written as file:///…; holds nothing but the path, so it is cheap to make and copy.

    `memory` of its methods is a number of bytes, or a text such as "256MB", "256 MiB" or, with Spark's meaning, "256m".
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Path = tables.local_path(path)

    @classmethod
    def build(
        cls,
        data: Any,
        path: str | os.PathLike[str],
        key: str | Sequence[str],
        *,
        page_bytes: int | None = None,
        on_duplicate: str = "error",
        order_by: str | Sequence[str] | None = None,
        memory: int | str = "256MB",
        progress: Progress | None = None,
    ) -> MasterTable:
        """Write all rows of `data` as the next version of the table at `path`; costs one sort.

        `data` is an Arrow table, a reader, record batches, a dataset, or the path of Parquet, CSV or Arrow files, and
        may be larger than `memory`. `on_duplicate` says what happens to rows of one key: "error", "all" or "latest".
        Pages have about `page_bytes`, if it is given; else 4096 where the rows are known to be no more than 1 GiB, and
        8192 where they are more or nobody knows.

        `data` may also be a DataFrame of Spark, which then sorts and writes in parallel within its own memory; driver
        and executors must reach `path`. Its rows have no order, so that "latest" needs `order_by`, the columns whose
        greatest values make a row the latest of its key.
        """
        table = cls(path)
        if is_spark_frame(data):
            # Here, because Spark takes long to load and need not be installed.
            from semistream.spark import master_build

            master_build.build(
                data,
                table.path,
                key,
                page_bytes=page_bytes,
                on_duplicate=on_duplicate,
                order_by=order_by,
                progress=progress,
            )
            return table
        if order_by is not None:
            raise InvalidSettingError(
                "order_by is for Spark DataFrames: leave it out, since the latest row of other data is the last one."
            )
        tables.build(
            data,
            table.path,
            key,
            page_bytes=page_bytes,
            on_duplicate=on_duplicate,
            memory=memory,
            progress=progress,
        )
        return table

    @property
    def version(self) -> int:
        """The number of the current version; costs one small read."""
        return tables.table_at(self.path).current_version()

    def open(self, version: int | None = None, direct: bool = False) -> MasterStore:
        """Return a store that shows one version: the current one unless it is named.

        With `direct` reads go past the page cache of the operating system.
        """
        return tables.table_at(self.path).open(version, direct=direct)

    def merge(
        self,
        upserts: Any = None,
        deletes: Any = None,
        *,
        order_by: str | Sequence[str] | None = None,
        memory: int | str = "256MB",
        progress: Progress | None = None,
    ) -> int:
        """Delete, then insert or replace rows by key, and return the version; costs the pages that are touched.

        Upserts have the columns of the table and no others, deletes at least its key columns. Of several upserts of a
        key the last one counts, unless the table was built with "all" and keeps them all. A DataFrame of Spark has no
        last row: there the columns `order_by` must say which one is the latest.
        """
        if is_spark_frame(upserts) or is_spark_frame(deletes):
            from semistream.spark import master_build

            return master_build.merge(self.path, upserts, deletes, memory=memory, order_by=order_by, progress=progress)
        if order_by is not None:
            raise InvalidSettingError("order_by is for upserts in a Spark DataFrame: leave it out.")
        return tables.merge(self.path, upserts, deletes, memory=memory, progress=progress)

    def info(self, version: int | None = None) -> dict[str, Any]:
        """Return rows, pages, bytes, schema, key, versions and files, without reading pages."""
        return tables.info(self.path, version=version)

    def verify(self, version: int | None = None) -> dict[str, int]:
        """Read every page, raise CorruptTableError at the first fault, and return what was checked."""
        return tables.verify(self.path, version=version)

    def compact(self, *, progress: Progress | None = None) -> int:
        """Copy all pages into one file, in their order, and return the version that has them so; costs a copy.

        Merges do part of that by themselves, so that the number of files stays small.
        """
        return tables.compact(self.path, progress=progress)

    def restore(self, version: int) -> int:
        """Go back to a version: commit its content under a new number, which is returned."""
        return tables.restore(self.path, version)

    def vacuum(
        self,
        keep_versions: int = 1,
        *,
        keep_for: float | str = tables.KEEP_FOR,
        also_keep: Iterable[int] = (),
        pins_older_than: float | str | None = None,
    ) -> dict[str, Any]:
        """Remove old versions, and return what was freed and why each other version stays.

        These stay: the newest `keep_versions`, those that were current within `keep_for` (seconds, or a text such as
        "10 minutes"; 0 for no such grace), those in `also_keep`, what queries may replay, and what somebody has open.
        Queries that have pinned nothing for `pins_older_than` are taken for gone.
        """
        return tables.vacuum(
            self.path, keep_versions, keep_for=keep_for, also_keep=also_keep, pins_older_than=pins_older_than
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MasterTable) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        return f"MasterTable({str(self.path)!r})"
