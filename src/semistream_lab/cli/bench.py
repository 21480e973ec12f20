"""The command that measures algorithms on a generated stream."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from semistream.core.budget import parse_bytes
from semistream.core.errors import InvalidSettingError
from semistream_lab.cli import bench_plan as plans
from semistream_lab.cli.bench_plan import Accounting, BenchPlan, ClockKind, Ranks, StoreKind

_MASTER = "Master table"
_STREAM = "Stream"
_MEASURE = "How to measure"


def bench(
    algorithm: Annotated[str, typer.Option(metavar="NAMES", help="Names separated by commas, or all.")] = "all",
    memory: Annotated[str, typer.Option(metavar="SIZE", help="The budget of a join, such as 50MB or 64MiB.")] = "50MB",
    master_rows: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Rows to generate.", show_default="2000000", rich_help_panel=_MASTER),
    ] = None,
    row_bytes: Annotated[
        int | None,
        typer.Option(
            min=plans.SMALLEST_ROW_BYTES,
            metavar="N",
            help="Bytes of a row.",
            show_default="120",
            rich_help_panel=_MASTER,
        ),
    ] = None,
    page_bytes: Annotated[
        int | None,
        typer.Option(min=512, metavar="N", help="Bytes of a page.", show_default="8192", rich_help_panel=_MASTER),
    ] = None,
    store: Annotated[
        StoreKind | None,
        typer.Option(
            help="Keep it in memory or in a paged file in the temporary folder.",
            show_default="memory",
            rich_help_panel=_MASTER,
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Use this paged table; it must have a single integer key.", rich_help_panel=_MASTER
        ),
    ] = None,
    direct: Annotated[
        bool, typer.Option("--direct", help="Read the file past the page cache (O_DIRECT).", rich_help_panel=_MASTER)
    ] = False,
    zipf: Annotated[
        float,
        typer.Option(
            min=0.0, metavar="EXPONENT", help="How skewed the keys are; 0 is uniform.", rich_help_panel=_STREAM
        ),
    ] = 1.0,
    ranks: Annotated[
        Ranks, typer.Option(help="Frequent keys side by side, or spread over the table.", rich_help_panel=_STREAM)
    ] = Ranks.SORTED,
    absent: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, metavar="SHARE", help="The share of tuples without a master row.", rich_help_panel=_STREAM
        ),
    ] = 0.0,
    payload: Annotated[
        bool,
        typer.Option(
            "--payload",
            help="Join Arrow batches and gather a payload into the output, not bare keys (wall clock).",
            rich_help_panel=_STREAM,
        ),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The random seed.", rich_help_panel=_STREAM)] = 0,
    tuples: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Stop after this many tuples of the stream.",
            show_default="2000000",
            rich_help_panel=_MEASURE,
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(metavar="S", help="Stop after this many seconds of the clock.", rich_help_panel=_MEASURE),
    ] = None,
    clock: Annotated[
        ClockKind,
        typer.Option(help="Real time, or the costs of a profile: the same on every machine.", rich_help_panel=_MEASURE),
    ] = ClockKind.WALL,
    accounting: Annotated[
        Accounting | None,
        typer.Option(
            help="Count the bytes we allocate, or those of the papers.",
            show_default="real; papers with --clock model",
            rich_help_panel=_MEASURE,
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="papers, ssd, remote, or a file that `calibrate` wrote: costs on the model clock; on the wall clock a "
            "store as slow as that.",
            show_default="papers with --clock model",
            rich_help_panel=_MEASURE,
        ),
    ] = None,
    tuned: Annotated[
        bool,
        typer.Option(
            "--tuned",
            help="Divide each algorithm's memory as its cost model advises.",
            rich_help_panel=_MEASURE,
        ),
    ] = False,
    parameter: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A parameter of an algorithm; repeatable.", rich_help_panel=_MEASURE),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the results as a list of flat objects.")
    ] = None,
) -> None:
    """Measure algorithms on a generated stream and compare them."""
    if tuples is not None and seconds is not None:
        raise InvalidSettingError("--tuples and --seconds contradict each other: give one of them.")
    if seconds is not None and not 0 < seconds < float("inf"):
        raise InvalidSettingError(f"--seconds must be above 0, but {seconds:g} was given.")
    memory_bytes = parse_bytes(memory)
    _check_store(
        store, master, direct, absent, {"master-rows": master_rows, "row-bytes": row_bytes, "page-bytes": page_bytes}
    )
    if clock is ClockKind.MODEL:
        accounting = accounting or Accounting.PAPERS
        profile = profile or "papers"
    _check_payload(payload, clock, accounting)
    if profile is not None:
        from semistream_lab.cost.profile_files import find_profile

        find_profile(profile)
    names = plans.chosen_algorithms(algorithm)
    plan = BenchPlan(
        algorithms=names,
        whole_family=algorithm.strip() == "all",
        memory_bytes=memory_bytes,
        zipf=zipf,
        ranks=ranks,
        absent=absent,
        tuples=None if seconds is not None else tuples or plans.DEFAULT_TUPLES,
        seconds=seconds,
        clock=clock,
        accounting=accounting or Accounting.REAL,
        profile=profile,
        store=StoreKind.FILE if master is not None or direct else store or StoreKind.MEMORY,
        master=master,
        master_rows=master_rows or plans.DEFAULT_MASTER_ROWS,
        row_bytes=row_bytes or plans.DEFAULT_ROW_BYTES,
        page_bytes=page_bytes or plans.DEFAULT_PAGE_BYTES,
        direct=direct,
        payload=payload,
        seed=seed,
        tuned=tuned,
        parameters=plans.parsed_parameters(parameter or [], names),
    )
    _run(plan, json_file)


def _run(plan: BenchPlan, json_file: Path | None) -> None:
    from semistream.cli import json_output
    from semistream.cli.progress import progress
    from semistream_lab.cli import bench_rendering, bench_runs

    if json_file is not None:
        json_output.check_writable(json_file)
    with progress() as reporting:
        results = bench_runs.run(plan, reporting)
    rows = [result.row() for result in results.measured]
    if json_file is not None:
        json_output.write_json(json_file, rows)
    bench_rendering.show(results)
    if json_file is not None:
        typer.echo(f"The results are in {json_file}.", err=True)


def _check_store(
    store: StoreKind | None, master: str | None, direct: bool, absent: float, sizes: dict[str, int | None]
) -> None:
    if direct and store is StoreKind.MEMORY:
        raise InvalidSettingError("--direct and --store memory contradict each other: leave one of them out.")
    if master is None:
        return
    if store is StoreKind.MEMORY:
        raise InvalidSettingError("--master and --store memory contradict each other: leave one of them out.")
    for name, value in sizes.items():
        if value is not None:
            raise InvalidSettingError(f"--master and --{name} contradict each other: the table has its own size.")
    if absent:
        raise InvalidSettingError("--absent needs a generated master table: leave out --master.")


def _check_payload(payload: bool, clock: ClockKind, accounting: Accounting | None) -> None:
    if payload and clock is ClockKind.MODEL:
        raise InvalidSettingError(
            "--payload and --clock model contradict each other: only the wall clock carries a payload."
        )
    if payload and accounting is Accounting.PAPERS:
        raise InvalidSettingError("--payload and --accounting papers contradict each other: leave one of them out.")
