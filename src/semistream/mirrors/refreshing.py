"""Builds mirrors, and brings them in step with their source."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from semistream.core.budget import parse_bytes
from semistream.core.errors import InvalidSettingError
from semistream.core.spark_frames import is_spark_frame
from semistream.mirrors.chosen_columns import added_columns, nullable
from semistream.mirrors.source_description import Circumstances, MirrorSource, SourceRows, as_description
from semistream.mirrors.sources import source_of
from semistream.store import tables
from semistream.store.address import Address
from semistream.store.merge_in_parts import AppliedDifference, MergeInParts, MirrorStep
from semistream.store.tables import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Refreshed:
    """What a refresh has done."""

    version: int
    """The version that is current now."""
    version_before: int
    rows_upserted: int = 0
    """Rows that were inserted or replaced because they differed."""
    rows_deleted: int = 0
    position: Mapping[str, Any] = field(default_factory=dict)
    """How far the source has been applied."""
    columns_added: tuple[str, ...] = ()
    rebuilt: bool = False
    """Whether all rows were written anew, as for an added column."""
    bytes_written: int = 0
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        """Whether the mirror has changed."""
        return self.version != self.version_before


def build_mirror(
    source: MirrorSource,
    address: Address,
    key: str | Sequence[str],
    *,
    page_bytes: int | None = None,
    on_duplicate: str = "error",
    memory: int | str = "256MB",
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> int:
    """Write all rows of a source as the next version of the table at `path`, together with where they come from."""
    names = (key,) if isinstance(key, str) else tuple(key)
    # Rows of Spark have no order, so that none of a key is the latest.
    is_parallel = source.uses_spark and on_duplicate != "latest"
    session = spark or _running_session() if is_parallel else _session(source, spark)
    circumstances = Circumstances(names, None, session, parse_bytes(memory))
    with source.all_rows(circumstances) as rows:
        return _built(rows, source, address, names, page_bytes, on_duplicate, memory, progress)


def refresh(
    address: Address,
    data: Any = None,
    *,
    memory: int | str = "256MB",
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> Refreshed:
    """Bring the table at `path` in step with its source, or with all rows in `data`, and say what has changed."""
    started = time.monotonic()
    about = tables.info(address)
    with tables.table_at(address).open(about["version"]) as store:
        schema, key = store.schema, store.key
    if data is not None:
        task = _Refresh(address, about, schema, about["mirror"], None, memory, progress)
        done = task.run(_given_rows(data, about["mirror"]))
    else:
        source, mirror = mirrored_source(address, about["mirror"]), about["mirror"]
        circumstances = Circumstances(tuple(key), schema, _session(source, spark), parse_bytes(memory))
        task = _Refresh(address, about, schema, mirror, (source, circumstances), memory, progress)
        # Of a key with several rows a change may tell only some.
        is_partial = source.tells_changes and about["on_duplicate"] == "all"
        opened = source.all_rows(circumstances) if is_partial else source.rows_since(mirror["position"], circumstances)
        with opened as rows:
            done = task.run(rows)
    return task.refreshed(done, time.monotonic() - started)


def mirrored_source(address: Address, mirror: Mapping[str, Any] | None = None) -> MirrorSource:
    """Return the source of a mirror; raises InvalidSettingError if the table is not one."""
    known = mirror or tables.info(address)["mirror"]
    if known is None:
        raise InvalidSettingError(
            f"{address.text} is not a mirror: give refresh the rows, or build it from a source with "
            f"`semistream master build {address.text} --from ADDRESS --key NAME`."
        )
    return source_of(known["source"])


class _Refresh:
    """One refresh of a table that is known."""

    def __init__(
        self,
        address: Address,
        about: Mapping[str, Any],
        schema: pa.Schema,
        mirror: Mapping[str, Any] | None,
        origin: tuple[MirrorSource, Circumstances] | None,
        memory: int | str,
        progress: Progress | None,
    ) -> None:
        self._address = address
        self._about = about
        self._schema = schema
        self._mirror = mirror
        self._origin = origin
        self._memory = memory
        self._progress = progress
        self._added: tuple[str, ...] = ()

    def run(self, rows: SourceRows | None) -> AppliedDifference:
        """Apply rows of the source; an added column needs all of them and a build."""
        if rows is None:
            return AppliedDifference(self._about["version"], 0, 0)
        self._added = added_columns(self._schema, rows.schema)
        if self._added:
            return self._rebuilt(rows)
        step = None if self._origin is None else MirrorStep(self._mirror, _state(self._origin[0], rows.position))
        if is_spark_frame(rows.rows) or is_spark_frame(rows.deletes):
            from semistream.spark import master_build

            return master_build.apply_difference(
                self._address,
                rows.rows,
                rows.deletes,
                whole=rows.whole,
                step=step,
                memory=self._memory,
                check=rows.check,
                progress=self._progress,
            )
        with MergeInParts(self._address, parse_bytes(self._memory), self._progress) as begun:
            return begun.apply_difference(
                begun.sorted_upserts(rows.rows),
                begun.sorted_deletes(rows.deletes),
                rule=self._about["on_duplicate"],
                whole=rows.whole,
                step=step,
                check=rows.check,
            )

    def refreshed(self, done: AppliedDifference, seconds: float) -> Refreshed:
        """Return what the refresh was."""
        now = tables.info(self._address, version=done.version)
        known = {file["name"] for file in self._about["files"]}
        return Refreshed(
            version=done.version,
            version_before=self._about["version"],
            rows_upserted=done.upserted_rows,
            rows_deleted=done.deleted_rows,
            position=(now["mirror"] or {}).get("position", {}),
            columns_added=self._added,
            rebuilt=bool(self._added),
            bytes_written=sum(file["bytes"] for file in now["files"] if file["name"] not in known),
            seconds=seconds,
        )

    def _rebuilt(self, rows: SourceRows) -> AppliedDifference:
        if rows.whole or self._origin is None:
            version = self._build(rows)
        else:
            source, circumstances = self._origin
            with source.all_rows(circumstances) as everything:
                version = self._build(everything)
        count = tables.info(self._address, version=version)["rows"]
        return AppliedDifference(version, count, max(0, self._about["rows"] - count))

    def _build(self, rows: SourceRows) -> int:
        about = self._about
        return _built(
            rows,
            None if self._origin is None else self._origin[0],
            self._address,
            tuple(about["key"]),
            about["page_bytes"],
            about["on_duplicate"],
            self._memory,
            self._progress,
            self._mirror,
        )


def _built(
    rows: SourceRows,
    source: MirrorSource | None,
    address: Address,
    key: tuple[str, ...],
    page_bytes: int | None,
    on_duplicate: str,
    memory: int | str,
    progress: Progress | None,
    kept: Mapping[str, Any] | None = None,
) -> int:
    mirror = kept if source is None else _state(source, rows.position)
    if is_spark_frame(rows.rows):
        from semistream.spark import master_build

        return master_build.build(
            rows.rows,
            address,
            key,
            page_bytes=page_bytes,
            on_duplicate=on_duplicate,
            progress=progress,
            mirror=mirror,
            check=rows.check,
            expected_bytes=rows.expected_bytes,
            in_ranges=rows.in_ranges,
        )
    return tables.build(
        rows.rows,
        address,
        key,
        page_bytes=page_bytes,
        on_duplicate=on_duplicate,
        memory=memory,
        progress=progress,
        mirror=mirror,
        check=rows.check,
    )


def _state(source: MirrorSource, position: Mapping[str, Any]) -> dict[str, Any]:
    return {"source": as_description(source), "position": dict(position)}


def _given_rows(data: Any, mirror: Mapping[str, Any] | None) -> SourceRows:
    position = (mirror or {}).get("position", {})
    if is_spark_frame(data):
        from semistream.spark.master_types import arrow_schema

        return SourceRows(data, arrow_schema(data.schema, ()), position)
    source = tables.open_source(data)
    return SourceRows(source, nullable(source.schema), position)


def _running_session() -> SparkSession | None:
    """Return the session that this process uses, if it uses Spark at all."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession as Session

    return Session.getActiveSession()


def _session(source: MirrorSource, spark: SparkSession | None) -> SparkSession | None:
    if not source.needs_spark:
        return None
    if spark is not None:
        return spark
    from pyspark.sql import SparkSession as Session

    active = Session.getActiveSession()
    if active is None:
        raise InvalidSettingError(f"A {source.kind} source is read by Spark: start a session, and pass it as spark=….")
    return active
