"""Builds and refreshes mirrors for the command line, with a Spark session where the source needs one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from semistream.cli.progress import progress
from semistream.core.errors import InvalidSettingError
from semistream.core.flat_json import Scalar
from semistream.master_table import MasterTable
from semistream.mirrors.refreshing import Refreshed, build_mirror, mirrored_source
from semistream.mirrors.source_description import MirrorSource
from semistream.mirrors.sources import source_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def table_of_mirror(places: Sequence[str], to: str | None) -> str:
    """Return the path of the table, which stands where files stand otherwise, or after --to."""
    given = [*places, *([to] if to is not None else [])]
    if len(given) != 1:
        raise InvalidSettingError("A mirror has one directory and one source: write `build PATH --from ADDRESS`.")
    return given[0]


def build(
    path: str,
    address: str,
    key: Sequence[str],
    page_bytes: int | None,
    on_duplicate: str,
    memory: str,
    settings: Sequence[str] | None,
) -> dict[str, Any]:
    """Build a mirror and return what is known about the table."""
    source, table = source_at(address), MasterTable(path)
    with _session(source, settings) as spark, progress() as reporting:
        build_mirror(
            source,
            table.address,
            key,
            page_bytes=page_bytes,
            on_duplicate=on_duplicate,
            memory=memory,
            spark=spark,
            progress=lambda what, done, total: reporting.update(f"{what.capitalize()} rows", done, total),
        )
    return table.info()


def refresh(path: str, memory: str, settings: Sequence[str] | None) -> Refreshed:
    """Refresh a mirror."""
    table = MasterTable(path)
    with _session(mirrored_source(table.address), settings) as spark, progress() as reporting:
        return table.refresh(
            memory=memory,
            spark=spark,
            progress=lambda what, done, total: reporting.update(f"{what.capitalize()} rows", done, total),
        )


def flat(path: str, done: Refreshed) -> dict[str, Scalar]:
    """Return what a refresh has done as a flat object."""
    return {
        "path": path,
        "version": done.version,
        "version_before": done.version_before,
        "rows_upserted": done.rows_upserted,
        "rows_deleted": done.rows_deleted,
        "columns_added": ", ".join(done.columns_added),
        "rebuilt": done.rebuilt,
        "bytes_written": done.bytes_written,
        "seconds": done.seconds,
    }


@contextmanager
def _session(source: MirrorSource, settings: Sequence[str] | None) -> Iterator[SparkSession | None]:
    pairs = [setting.partition("=") for setting in settings or ()]
    for name, equals, _ in pairs:
        if not equals or not name.startswith("spark."):
            raise InvalidSettingError(f"{name!r} is not a setting of Spark: write --setting spark.NAME=VALUE.")
    if not source.needs_spark and not (source.uses_spark and pairs):
        yield None
        return
    from semistream.spark.spark_session import make_session

    chosen = {name: value for name, _, value in pairs}
    spark = make_session("semistream master", chosen.pop("spark.master", "local[*]"), chosen)
    try:
        yield spark
    finally:
        spark.stop()
