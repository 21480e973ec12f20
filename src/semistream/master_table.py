"""The master table as users name it: by its place."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semistream.core.budget import parse_bytes
from semistream.core.errors import InvalidSettingError
from semistream.core.spark_frames import is_spark_frame
from semistream.mirrors.source_description import MirrorSource
from semistream.store import tables
from semistream.store.address import Address
from semistream.store.contract import MasterStore
from semistream.store.tables import Progress

if TYPE_CHECKING:
    from semistream.mirrors.refreshing import Refreshed


class MasterTable:
    """A master table where it is stored; holds only the address, so it is cheap to make, copy and pickle.

    Args:
        address: The directory of the table, also written as file:///…, or a folder of an object store such as
            s3://lake/products.
    """

    def __init__(self, address: str | os.PathLike[str]) -> None:
        self.address = Address.of(address)
        tables.table_at(self.address)  # says at once that there are no tables at such an address

    @property
    def path(self) -> Path:
        """The directory of a table on this machine; a table elsewhere has none, which is an error."""
        return self.address.path

    @classmethod
    def build(
        cls,
        data: Any,
        address: str | os.PathLike[str],
        key: str | Sequence[str],
        *,
        page_bytes: int | None = None,
        on_duplicate: str = "error",
        order_by: str | Sequence[str] | None = None,
        memory: int | str = "256MB",
        progress: Progress | None = None,
    ) -> MasterTable:
        """Write all rows as the next version of the table at an address; costs one sort.

        Args:
            data: An Arrow table, a reader, record batches, a dataset, or the path of Parquet, CSV or Arrow files, which
                may be larger than `memory`. Or a Spark DataFrame, which Spark sorts and writes in parallel, within its
                own memory; driver and executors must then reach the table by the same address. Or a source such as
                FileSource: the table becomes a mirror, which `refresh` keeps in step with it.
            address: The directory of the table, or a folder of an object store such as s3://lake/products.
            key: The key column, or a list of key columns.
            page_bytes: The approximate size of a page in bytes. By default 4096 where the rows are known to take 1 GiB
                or less, and 8192 otherwise.
            on_duplicate: What to do with rows that share a key: "error" refuses them, "all" keeps all of them, and
                "latest" keeps the last one.
            order_by: For Spark DataFrames with "latest" only, because their rows have no order: the columns whose
                greatest values make a row the latest of its key.
            memory: What sorting may use: bytes, or a string such as "256MB". Spark uses its own memory instead.
            progress: A function that is called with what is being done, how much of it is done, and the total or None.
        """
        table = cls(address)
        if isinstance(data, MirrorSource):
            if order_by is not None:
                raise InvalidSettingError("order_by is for Spark DataFrames: leave it out.")
            from semistream.mirrors import refreshing

            refreshing.build_mirror(
                data,
                table.address,
                key,
                page_bytes=page_bytes,
                on_duplicate=on_duplicate,
                memory=memory,
                progress=progress,
            )
            return table
        if is_spark_frame(data):
            # Here, because Spark takes long to load and need not be installed.
            from semistream.spark import master_build

            master_build.build(
                data,
                table.address,
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
            table.address,
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
        return tables.table_at(self.address).current_version()

    def open(self, version: int | None = None, direct: bool = False) -> MasterStore:
        """Return a store that shows one version of the table, which `join` also accepts.

        Args:
            version: The number of the version; by default the current one.
            direct: Whether reads bypass the operating system's page cache.
        """
        return tables.table_at(self.address).open(version, direct=direct)

    def merge(
        self,
        upserts: Any = None,
        deletes: Any = None,
        *,
        order_by: str | Sequence[str] | None = None,
        memory: int | str = "256MB",
        progress: Progress | None = None,
    ) -> int:
        """Delete, insert and replace rows by key, and return the new version; costs the pages that are touched.

        Deletes come first, so a row that is in both is inserted again.

        Args:
            upserts: Rows to insert or replace, in any form that `build` takes, with the columns of the table and no
                others. If a key is there several times the last
                row counts, unless the table was built with "all", which keeps all of them.
            deletes: Rows with the key columns of the rows to delete, in any form that `build` takes.
            order_by: For upserts in a Spark DataFrame only, because its rows have no order: the columns whose greatest
                values make a row the latest of its key.
            memory: What sorting may use: bytes, or a string such as "256MB".
            progress: A function that is called with what is being done, how much of it is done, and the total or None.
        """
        if is_spark_frame(upserts) or is_spark_frame(deletes):
            from semistream.spark import master_build

            return master_build.merge(
                self.address, upserts, deletes, memory=memory, order_by=order_by, progress=progress
            )
        if order_by is not None:
            raise InvalidSettingError("order_by is for upserts in a Spark DataFrame: leave it out.")
        return tables.merge(self.address, upserts, deletes, memory=memory, progress=progress)

    def refresh(
        self,
        data: Any = None,
        *,
        memory: int | str = "256MB",
        spark: Any = None,
        progress: Progress | None = None,
    ) -> Refreshed:
        """Bring the table in step with its source in one commit, and return what has changed.

        Only rows that differ are merged, so that it may be killed and repeated. A column that the source has gained is
        added, for which the table is built anew; one that it has lost or retyped is an error before anything is
        written. If nothing has changed there is no new version.

        Args:
            data: All rows that the table should have, in any form that `build` takes. By default the source that the
                table was built from is read.
            memory: What sorting and comparing may use: bytes, or a string such as "256MB".
            spark: The Spark session for a source that Spark reads; by default the active one.
            progress: A function that is called with what is being done, how much of it is done, and the total or None.
        """
        from semistream.mirrors import refreshing

        return refreshing.refresh(self.address, data, memory=memory, spark=spark, progress=progress)

    def info(self, version: int | None = None) -> dict[str, Any]:
        """Return rows, pages, bytes, schema, key, versions, files and pins, without reading pages.

        Args:
            version: The number of the version; by default the current one.
        """
        return tables.info(self.address, version=version)

    def verify(self, version: int | None = None) -> dict[str, int]:
        """Read every page, raise CorruptTableError at the first fault, and return what was checked.

        Args:
            version: The number of the version; by default the current one.
        """
        return tables.verify(self.address, version=version)

    def compact(self, *, progress: Progress | None = None) -> int:
        """Copy all pages into one file, in order, and return the new version; costs a copy of the table.

        Merges already do part of this by themselves, so that the number of files stays small.

        Args:
            progress: A function that is called with what is being done, how much of it is done, and the total or None.
        """
        return tables.compact(self.address, progress=progress)

    def recluster(
        self,
        by: Any = None,
        *,
        index_memory: int | str | None = None,
        memory: int | str = "256MB",
        progress: Progress | None = None,
    ) -> int:
        """Write all rows in the order of their use as the next version, and return its number.

        What is asked for often then lies together on the first pages, which some algorithms keep in memory; keys are
        found as before. Costs two reads of the table, and writes it twice.

        Args:
            by: What tells how often rows are asked for. The name of a column of numbers, dates or times, of which the
                greatest values are the hottest. Or counts of keys, in any form that `build` takes but a DataFrame: the
                key columns and a column "count". By default the use that the caches of `enrich` have saved beside the
                table.
            index_memory: What the map of hot keys may take in the memory of each join: bytes, or a string such as
                "1MB". By default half of the keys are hot at most, and the map takes 2.5 to 3 bytes for each.
            memory: What sorting may use: bytes, or a string such as "256MB".
            progress: A function that is called with what is being done, how much of it is done, and the total or None.
        """
        if is_spark_frame(by):
            raise InvalidSettingError("Counts of keys do not come as a Spark DataFrame: give its `toArrow()`.")
        use = self._saved_use(parse_bytes(memory)) if by is None else _told_use(by)
        return tables.recluster(self.address, use, index_memory=index_memory, memory=memory, progress=progress)

    def _saved_use(self, memory_bytes: int) -> tables.Use:
        """Return the use that caches have saved beside the table."""
        from semistream.spark.saved_cache import saved_use

        beside = tables.table_at(self.address).saved_rows
        used = saved_use(beside, memory_bytes) if beside is not None else None
        if used is None or not len(used[0]):
            raise InvalidSettingError(
                f"No query has saved how the rows of {self.address} are used: name a column that tells it, or give "
                f"counts of keys."
            )
        return tables.use_of_codes(*used)

    def restore(self, version: int) -> int:
        """Go back to an earlier version: commit its content under a new number, and return that.

        Args:
            version: The number of the version to go back to.
        """
        return tables.restore(self.address, version)

    def vacuum(
        self,
        keep_versions: int = 1,
        *,
        keep_for: float | str = tables.KEEP_FOR,
        also_keep: Iterable[int] = (),
        pins_older_than: float | str | None = None,
    ) -> dict[str, Any]:
        """Remove old versions, and return what was freed and why each other version stays.

        Versions that a query may replay, or that are open, always stay.

        Args:
            keep_versions: How many of the newest versions to keep.
            keep_for: Versions that were current within this time stay: seconds, or a string such as "10 minutes"; 0
                turns this off.
            also_keep: Numbers of other versions that stay.
            pins_older_than: Queries that have pinned nothing for this time are considered gone, and their pins are
                removed. By default, pins stay.
        """
        return tables.vacuum(
            self.address, keep_versions, keep_for=keep_for, also_keep=also_keep, pins_older_than=pins_older_than
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MasterTable) and other.address == self.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __repr__(self) -> str:
        return f"MasterTable({str(self.address)!r})"


def _told_use(by: Any) -> tables.Use:
    """Return the use that a column or counts of keys tell."""
    return tables.use_in_column(by) if isinstance(by, str) else tables.use_of_keys(by)
