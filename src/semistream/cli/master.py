"""The commands that make, change and look after master tables."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semistream.cli.plain_help import PlainCommand
from semistream.core.errors import InvalidSettingError

if TYPE_CHECKING:
    from semistream.cli.json_output import Scalar

master_app = typer.Typer(help="Build, change and maintain master tables.", rich_markup_mode=None)

_MEMORY = "256MB"
# A text and not a path: a path would make one slash of the two in an address, and then show its password.
TablePath = Annotated[
    str, typer.Argument(metavar="PATH", help="The directory or address of the table.", show_default=False)
]
Memory = Annotated[str, typer.Option(metavar="SIZE", help="Memory for sorting, such as 256MB.")]
SparkSettings = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="A setting of Spark, for sources that Spark reads and first loads from databases; repeatable.",
        show_default=False,
    ),
]
Version = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="A version other than the current one.", show_default=False),
]


class OnDuplicate(StrEnum):
    """What happens to rows that share a key."""

    ERROR = "error"
    ALL = "all"
    LATEST = "latest"


@master_app.callback(invoke_without_command=True)
def master(context: typer.Context) -> None:
    """Build, change and maintain master tables."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@master_app.command(cls=PlainCommand)
def build(
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Parquet, CSV or Arrow IPC files, or directories of them; with --from, the directory of the table.",
        ),
    ],
    key: Annotated[
        list[str], typer.Option(metavar="NAME[,NAME]", help="The key columns, separated by commas.", show_default=False)
    ],
    page_bytes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="The approximate size of a page in bytes.",
            show_default="4096; 8192 for tables above 1 GiB",
        ),
    ] = None,
    on_duplicate: Annotated[
        OnDuplicate,
        typer.Option(
            metavar="RULE", help="error, all or latest: refuse rows that share a key, keep all of them, or the last."
        ),
    ] = OnDuplicate.ERROR,
    memory: Memory = _MEMORY,
    to: Annotated[
        str | None, typer.Option(metavar="PATH", help="The directory of the table.", show_default=False)
    ] = None,
    mirrored: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="ADDRESS",
            help="Make a mirror of the source at this address, which `refresh` keeps in step with it.",
            show_default=False,
        ),
    ] = None,
    setting: SparkSettings = None,
) -> None:
    """Build a table, or its next version, from all its rows.

    `build FILE... --to PATH` makes a table, and `build PATH --from ADDRESS` a mirror.
    """
    from semistream.cli import mirrors, rendering, source_files
    from semistream.cli.progress import progress
    from semistream.master_table import MasterTable

    names = [name.strip() for part in key for name in part.split(",") if name.strip()]
    if not names:
        raise InvalidSettingError("No key column is named: give --key NAME[,NAME].")
    if mirrored is not None:
        path = mirrors.table_of_mirror(source, to)
        rendering.show_built(mirrors.build(path, mirrored, names, page_bytes, on_duplicate.value, memory, setting))
        return
    if to is None:
        raise InvalidSettingError("Where the table goes is missing: give --to PATH, or --from ADDRESS for a mirror.")
    files = source_files.existing_files([Path(one) for one in source])
    with progress() as reporting:
        table = MasterTable.build(
            files,
            to,
            names,
            page_bytes=page_bytes,
            on_duplicate=on_duplicate.value,
            memory=memory,
            progress=lambda what, done, total: reporting.update(f"{what.capitalize()} rows", done, total),
        )
    rendering.show_built(table.info())


@master_app.command(cls=PlainCommand)
def merge(
    path: TablePath,
    upserts: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Rows to insert or replace; repeatable.")
    ] = None,
    deletes: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Keys of rows to delete; repeatable.")
    ] = None,
    memory: Memory = _MEMORY,
) -> None:
    """Delete, insert and replace rows by key, as a new version."""
    from semistream.cli import rendering, source_files
    from semistream.cli.progress import progress
    from semistream.master_table import MasterTable

    if not upserts and not deletes:
        raise InvalidSettingError("There is nothing to merge: give --upserts FILE or --deletes FILE.")
    table = MasterTable(path)
    with table.open() as current:
        before, schema = current.version, current.schema
    changed, dropped = (source_files.as_in_table(files, schema) if files else None for files in (upserts, deletes))
    with progress() as reporting:
        version = table.merge(
            changed,
            dropped,
            memory=memory,
            progress=lambda what, done, total: reporting.update(what.capitalize(), done, total),
        )
    rendering.show_merged(table.info(version), before)


@master_app.command(cls=PlainCommand)
def refresh(
    path: TablePath,
    memory: Memory = _MEMORY,
    setting: SparkSettings = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list with one flat object.")] = False,
) -> None:
    """Merge what has changed in the source of a mirror.

    It may be stopped and repeated at any time: rows and position are committed together.
    """
    from semistream.cli import json_output, mirrors, rendering

    done = mirrors.refresh(path, memory, setting)
    if as_json:
        typer.echo(json_output.as_json([mirrors.flat(path, done)]), nl=False)
    else:
        rendering.show_refreshed(path, done)


@master_app.command(cls=PlainCommand)
def info(
    path: TablePath,
    version: Version = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list with one flat object.")] = False,
) -> None:
    """Show rows, pages, versions and pins, without reading pages."""
    from semistream.cli import json_output, rendering
    from semistream.master_table import MasterTable

    about = MasterTable(path).info(version)
    if not as_json:
        rendering.show_info(about)
        return
    flat: dict[str, Scalar] = {
        name: about[name]
        for name in ("path", "version", "created", "rows", "pages", "bytes", "page_bytes", "on_duplicate", "unique")
    }
    flat["key"] = ", ".join(about["key"])
    flat["columns"] = ", ".join(f"{name} {kind}" for name, kind in about["schema"].items())
    flat["files"] = len(about["files"])
    flat["by_use"] = about["by_use"]["by"] if about["by_use"] else None
    flat["mirror_of"] = about["mirror"]["source"]["kind"] if about["mirror"] else None
    flat["versions"] = ", ".join(map(str, about["versions"]))
    flat["pins"] = ", ".join(
        f"{pin['query']} batch {pin['batch']} version {pin['version']} age {pin['age_seconds']:.0f} s"
        for pin in about["pins"]
    )
    flat["damaged_pins"] = ", ".join(about["damaged_pins"])
    typer.echo(json_output.as_json([flat]), nl=False)


@master_app.command(cls=PlainCommand)
def verify(path: TablePath, version: Version = None) -> None:
    """Read every page of a table and check it."""
    from semistream.cli import rendering
    from semistream.cli.progress import progress
    from semistream.master_table import MasterTable

    with progress() as reporting:
        reporting.update("Checking every page", 0, None)
        checked = MasterTable(path).verify(version)
    rendering.show_verified(path, checked)


@master_app.command(cls=PlainCommand)
def compact(path: TablePath) -> None:
    """Copy all pages of a table into one file, as a new version."""
    from semistream.cli import rendering
    from semistream.cli.progress import progress
    from semistream.master_table import MasterTable

    table = MasterTable(path)
    before = table.info()
    with progress() as reporting:
        version = table.compact(progress=lambda what, done, total: reporting.update(what.capitalize(), done, total))
    rendering.show_compacted(table.info(version), before)


@master_app.command(cls=PlainCommand)
def recluster(
    path: TablePath,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="A column whose greatest values are those of the rows that are asked for most.",
            show_default=False,
        ),
    ] = None,
    counts: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Key columns and a column count: how often keys are asked for; repeatable."),
    ] = None,
    index_memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="What the map of hot keys may take in the memory of a join, such as 1MB.",
            show_default="3 bytes a hot key, of which at most half are",
        ),
    ] = None,
    memory: Memory = _MEMORY,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list with one flat object.")] = False,
) -> None:
    """Put the hottest rows on the first pages, as a new version.

    Without --by and --counts it takes the use that caches of Spark queries have saved beside the table.
    """
    from semistream.cli import json_output, rendering, source_files
    from semistream.cli.progress import progress
    from semistream.master_table import MasterTable

    if by is not None and counts:
        raise InvalidSettingError("Rows can be in one order only: give --by COLUMN or --counts FILE, not both.")
    table = MasterTable(path)
    with table.open() as current:
        before, schema = current.index_bytes, current.schema
    with progress() as reporting:
        version = table.recluster(
            source_files.as_in_table(counts, schema) if counts else by,
            index_memory=index_memory,
            memory=memory,
            progress=lambda what, done, total: reporting.update(f"{what.capitalize()} rows", done, total),
        )
    with table.open(version) as ordered:
        after = ordered.index_bytes
    about = table.info(version)
    if not as_json:
        rendering.show_reclustered(about, before, after)
        return
    by_use = about["by_use"]
    flat: dict[str, Scalar] = {name: about[name] for name in ("path", "version", "rows", "pages", "bytes")}
    flat |= {"by": by_use["by"], "hot_keys": by_use["keys"], "hot_pages": sum(by_use["pages"][:-1])}
    flat |= {"classes": len(by_use["pages"]), "index_bytes_before": before, "index_bytes": after}
    typer.echo(json_output.as_json([flat]), nl=False)


@master_app.command(cls=PlainCommand)
def restore(
    path: TablePath,
    version: Annotated[int, typer.Option(metavar="N", min=1, help="The version to go back to.", show_default=False)],
) -> None:
    """Go back to the rows of an earlier version, as a new version.

    The versions in between stay until they are vacuumed. This also helps if the newest manifest is damaged.
    """
    from semistream.cli import rendering
    from semistream.master_table import MasterTable

    table = MasterTable(path)
    rendering.show_restored(table.info(table.restore(version)), version)


@master_app.command(cls=PlainCommand)
def vacuum(
    path: TablePath,
    keep: Annotated[int, typer.Option(metavar="N", min=1, help="How many of the newest versions to keep.")] = 1,
    keep_for: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Versions that were current within this time stay, such as '10 minutes'; 0 turns this off.",
        ),
    ] = "10 minutes",
    pins_older_than: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Remove the pins of queries that have pinned nothing for this time, such as '7 days'.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Remove old versions, and say why the others stay.

    Versions that a query may replay, or that are being read, always stay.
    """
    from semistream.cli import rendering
    from semistream.master_table import MasterTable

    freed = MasterTable(path).vacuum(keep, keep_for=keep_for, pins_older_than=pins_older_than)
    rendering.show_vacuumed(freed)
