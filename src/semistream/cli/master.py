"""The commands that make, change and look after master tables."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semistream.core.errors import InvalidSettingError

if TYPE_CHECKING:
    from semistream.cli.json_output import Scalar

master_app = typer.Typer(help="Make, change and look after master tables.", rich_markup_mode=None)

_MEMORY = "256MB"
# A text and not a path: a path would make one slash of the two in an address, and then show its password.
TablePath = Annotated[
    str, typer.Argument(metavar="PATH", help="The directory or address of the table.", show_default=False)
]
Memory = Annotated[str, typer.Option(help="Memory for sorting, such as 256MB.")]
Version = Annotated[int | None, typer.Option(min=1, help="A version other than the current one.", show_default=False)]


class OnDuplicate(StrEnum):
    """What happens to rows that share a key."""

    ERROR = "error"
    ALL = "all"
    LATEST = "latest"


@master_app.callback(invoke_without_command=True)
def master(context: typer.Context) -> None:
    """Make, change and look after master tables."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@master_app.command()
def build(
    source: Annotated[
        list[Path], typer.Argument(metavar="SOURCE...", help="Parquet, CSV or Arrow IPC files, or directories of them.")
    ],
    to: Annotated[str, typer.Option(metavar="PATH", help="The directory or address of the table.", show_default=False)],
    key: Annotated[
        list[str], typer.Option(metavar="NAME[,NAME]", help="The key columns, with commas.", show_default=False)
    ],
    page_bytes: Annotated[
        int | None,
        typer.Option(help="About how many bytes a page has.", show_default="4096; 8192 for tables above 1 GiB"),
    ] = None,
    on_duplicate: Annotated[
        OnDuplicate, typer.Option(help="Refuse rows that share a key, keep all of them, or the latest.")
    ] = OnDuplicate.ERROR,
    memory: Memory = _MEMORY,
) -> None:
    """Build a table, or the next version of it, from all its rows."""
    from semistream.cli import rendering, source_files
    from semistream.cli.progress import progress
    from semistream.master_table import MasterTable

    names = [name.strip() for part in key for name in part.split(",") if name.strip()]
    if not names:
        raise InvalidSettingError("No key column is named: give --key NAME[,NAME].")
    files = source_files.existing_files(source)
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


@master_app.command()
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
    """Delete, insert and replace rows by key; makes a version."""
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


@master_app.command()
def info(
    path: TablePath,
    version: Version = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list with one flat object.")] = False,
) -> None:
    """Say what a table consists of, without reading its pages."""
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
    flat["versions"] = ", ".join(map(str, about["versions"]))
    flat["pins"] = ", ".join(
        f"{pin['query']} batch {pin['batch']} version {pin['version']} age {pin['age_seconds']:.0f} s"
        for pin in about["pins"]
    )
    typer.echo(json_output.as_json([flat]), nl=False)


@master_app.command()
def verify(path: TablePath, version: Version = None) -> None:
    """Read every page of a table and check it."""
    from semistream.cli import rendering
    from semistream.cli.progress import progress
    from semistream.master_table import MasterTable

    with progress() as reporting:
        reporting.update("Checking every page", 0, None)
        checked = MasterTable(path).verify(version)
    rendering.show_verified(path, checked)


@master_app.command()
def compact(path: TablePath) -> None:
    """Copy all pages of a table into one file; makes a version."""
    from semistream.cli import rendering
    from semistream.cli.progress import progress
    from semistream.master_table import MasterTable

    table = MasterTable(path)
    before = table.info()
    with progress() as reporting:
        version = table.compact(progress=lambda what, done, total: reporting.update(what.capitalize(), done, total))
    rendering.show_compacted(table.info(version), before)


@master_app.command()
def restore(
    path: TablePath,
    version: Annotated[int, typer.Option(min=1, help="The version to go back to.", show_default=False)],
) -> None:
    """Go back to the rows of an earlier version; makes a version.

    The versions in between stay until they are vacuumed. This also helps if the newest manifest is damaged.
    """
    from semistream.cli import rendering
    from semistream.master_table import MasterTable

    table = MasterTable(path)
    rendering.show_restored(table.info(table.restore(version)), version)


@master_app.command()
def vacuum(
    path: TablePath,
    keep: Annotated[int, typer.Option(min=1, help="How many of the newest versions stay.")] = 1,
    keep_for: Annotated[
        str, typer.Option(help="Versions that were current within this time stay, such as '10 minutes'; 0 for none.")
    ] = "10 minutes",
    pins_older_than: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Queries that have pinned nothing for this time, such as '7 days', are gone: their pins are removed.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Remove old versions, and say why the others stay.

    What a query may replay and what somebody reads stays in any case.
    """
    from semistream.cli import rendering
    from semistream.master_table import MasterTable

    freed = MasterTable(path).vacuum(keep, keep_for=keep_for, pins_older_than=pins_older_than)
    rendering.show_vacuumed(freed)
