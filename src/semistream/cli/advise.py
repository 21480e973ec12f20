"""The command that says how much memory brings which hit rate."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semistream.core.errors import InvalidSettingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from semistream.joining.advice import Advice


def advise(
    master: Annotated[str, typer.Option(metavar="PATH", help="The directory of the master table.", show_default=False)],
    sample: Annotated[
        list[Path],
        typer.Option(metavar="FILE", help="Rows of the stream: Parquet, CSV or Arrow files; repeatable."),
    ],
    on: Annotated[
        str,
        typer.Option(
            metavar="NAME[,NAME]",
            help="The key columns of the sample, in the order of the master's key.",
            show_default="those of the master table",
        ),
    ] = "",
    columns: Annotated[
        str,
        typer.Option(metavar="NAME[,NAME]", help="The master columns that are added.", show_default="all but its key"),
    ] = "",
    memory: Annotated[
        str, typer.Option(metavar="SIZE[,SIZE]", help="The amounts of memory to compare.")
    ] = "16MB,64MB,256MB",
    rows: Annotated[
        int, typer.Option(metavar="N", min=1, help="Also show the hit rate over the first N rows of a worker.")
    ] = 1_000_000,
    batch_rows: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Rows that a task gets in a micro-batch; more lower the hit rate."),
    ] = 50_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of flat objects.")] = False,
) -> None:
    """Predict the hit rate of each amount of memory from a sample.

    Predicts what share of the stream's rows would be answered from memory, without a read. The sample should hold rows
    as they arrive, not distinct keys: what matters is how often keys repeat. Memory and rows are those of one Python
    worker: if four workers share the stream, each of them takes four times as long to warm up.
    """
    from semistream.cli import json_output, source_files
    from semistream.cli.progress import progress
    from semistream.joining.advice import advise as advise_on
    from semistream.store.tables import table_at

    if not _names(memory):
        raise InvalidSettingError("No amount of memory is named: give --memory SIZE[,SIZE].")
    with table_at(master).open() as store:
        keys = _names(on) or list(store.key)
        if len(keys) != len(store.key):
            raise InvalidSettingError(f"The master table's key has {len(store.key)} columns: name that many with --on.")
        types = {ours: store.schema.field(theirs).type for ours, theirs in zip(keys, store.key, strict=True)}
        with progress() as reporting:
            reporting.update("Reading the sample", 0, None)
            table = source_files.columns_of(sample, keys, types)
            advice = advise_on(
                table,
                store,
                on=dict(zip(keys, store.key, strict=True)),
                columns=_names(columns) or None,
                memory=_names(memory),
                rows=rows,
                batch_rows=batch_rows,
                progress=lambda done, total: reporting.update("Simulating the cache", done, total),
            )
    if as_json:
        typer.echo(json_output.as_json([asdict(each) for each in advice]), nl=False)
        return
    _show(advice, table.num_rows)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


_LITTLE_KNOWN = 0.1


def _show(advice: Sequence[Advice], sample_rows: int) -> None:
    from semistream.cli.rendering import console, plain_table, say
    from semistream.core.budget import format_bytes

    table = plain_table()
    for name in ("Memory", "Cached rows", f"First {advice[0].first_rows:,} rows", "Once warm", "Warm after"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in advice:
        table.add_row(
            format_bytes(each.memory_bytes),
            f"{each.cached_rows:,}",
            f"{each.first_hit_rate:.1%}",
            f"{each.hit_rate:.1%}",
            f"{each.warm_rows:,} rows",
        )
    out = console()
    say(f"Rows answered without a read, predicted from {sample_rows:,} rows of the stream:", out)
    out.print()
    out.print(table)
    if advice[0].sampled_rate < _LITTLE_KNOWN:
        out.print()
        say("Few keys repeat in the sample, so most of this is extrapolated: a longer sample says more.", out)
