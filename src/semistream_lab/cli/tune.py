"""The command that finds the best parameters of algorithms."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semistream.core.budget import parse_bytes
from semistream.core.errors import BudgetTooSmallError, InvalidSettingError
from semistream_lab.cli import bench_plan as plans
from semistream_lab.cli.bench_plan import Ranks

if TYPE_CHECKING:
    from semistream.cli.progress import Progress
    from semistream.core.costs import CostProfile
    from semistream.generator import KeySource
    from semistream.store.contract import MasterStore
    from semistream_lab.cli.tune_rendering import Tuned
    from semistream_lab.cost import Situation

_MASTER = "Master table"


def tune(
    algorithm: Annotated[str, typer.Option(metavar="NAMES", help="Names separated by commas, or all.")] = "all",
    memory: Annotated[str, typer.Option(metavar="SIZE", help="The budget of a join, such as 50MB or 64MiB.")] = "50MB",
    master: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Tune for this paged table, as large as it is.", rich_help_panel=_MASTER),
    ] = None,
    master_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Tune for a table of this many rows of 120 bytes.",
            show_default="2000000",
            rich_help_panel=_MASTER,
        ),
    ] = None,
    zipf: Annotated[
        float, typer.Option(min=0.0, metavar="EXPONENT", help="How skewed the keys are; 0 is uniform.")
    ] = 1.0,
    ranks: Annotated[Ranks, typer.Option(help="Frequent keys side by side, or spread over the table.")] = Ranks.SORTED,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What operations cost: papers, ssd, remote, or a file of `semistream lab calibrate`.",
            show_default="papers; ssd with --master",
        ),
    ] = None,
    empirical: Annotated[
        bool,
        typer.Option(
            "--empirical",
            help="Also measure: on the model clock, or on the wall clock with --master.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The random seed of the measured streams.")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write every point as a list of flat objects.")
    ] = None,
) -> None:
    """Find the best parameters by cost model and by measurement."""
    memory_bytes = parse_bytes(memory)
    if master is not None and master_rows is not None:
        raise InvalidSettingError("--master and --master-rows contradict each other: the table has its own size.")
    names = plans.chosen_algorithms(algorithm)
    from semistream.cli import json_output
    from semistream.cli.progress import progress
    from semistream_lab.cli import tune_rendering
    from semistream_lab.cost.profile_files import find_profile

    costs = find_profile(profile or ("papers" if master is None else "ssd"))
    if json_file is not None:
        json_output.check_writable(json_file)
    with ExitStack() as cleanup, progress() as reporting:
        situation, store, keys = _situation(
            master, master_rows or plans.DEFAULT_MASTER_ROWS, memory_bytes, zipf, ranks, cleanup, reporting, seed
        )
        results = [
            _tuned(name, situation, costs, store, keys, empirical, seed, reporting, skip=len(names) > 1)
            for name in names
        ]
    tunings = [result for result in results if result is not None]
    if not tunings:
        raise InvalidSettingError(f"{memory} of memory is too little for any of these algorithms: give more memory.")
    rows = [row for result in tunings for row in tune_rendering.rows(result, situation, costs.name)]
    if json_file is not None:
        json_output.write_json(json_file, rows)
    tune_rendering.show(tunings, situation, costs.name)
    if json_file is not None:
        typer.echo(f"The points are in {json_file}.", err=True)


def _situation(
    master: str | None,
    master_rows: int,
    memory_bytes: int,
    zipf: float,
    ranks: Ranks,
    cleanup: ExitStack,
    reporting: Progress,
    seed: int,
) -> tuple[Situation, MasterStore | None, Callable[[], KeySource] | None]:
    """Return the situation, and for an existing table its store and a stream of its keys."""
    from semistream_lab.cost import Situation

    if master is None:
        return Situation(master_rows, memory_bytes, zipf, ranks.value), None, None
    from semistream.generator import ZipfKeys
    from semistream_lab.cli import bench_tables
    from semistream_lab.cli.bench_keys import ChosenKeys
    from semistream_lab.cli.bench_runs import TableSize

    store = cleanup.enter_context(bench_tables.existing_table(master, direct=False))
    size = TableSize.of(store)
    situation = Situation(
        size.rows, memory_bytes, zipf, ranks.value, max(1, size.row_bytes), max(1, size.page_bytes), "real"
    )
    numbers = bench_tables.keys_of(store, reporting)

    def stream() -> KeySource:
        return ChosenKeys(ZipfKeys(len(numbers), zipf, seed=seed, ranks=ranks.value), numbers)

    return situation, store, stream


def _tuned(
    name: str,
    situation: Situation,
    costs: CostProfile,
    store: MasterStore | None,
    keys: Callable[[], KeySource] | None,
    empirical: bool,
    seed: int,
    reporting: Progress,
    *,
    skip: bool,
) -> Tuned | None:
    """Tune one algorithm; None if it is to be left out because the memory is too small for it."""
    from semistream_lab.cli.tune_rendering import Tuned
    from semistream_lab.cost import predict, tune_by_measurement
    from semistream_lab.cost import tune as tune_by_model

    try:
        default = predict(name, situation, costs).service_rate
        by_model = tune_by_model(
            name,
            situation,
            costs,
            progress=lambda done, _: reporting.update(f"{name}, points of the model", done, None),
        )
        measured = None
        if empirical:
            measured = tune_by_measurement(
                name,
                situation,
                costs,
                seed=seed,
                start=by_model,
                store=store,
                keys=keys,
                progress=lambda done, total: reporting.update(f"{name}, points measured", done, total),
            )
    except BudgetTooSmallError:
        if not skip:
            raise
        return None
    return Tuned(by_model, measured, default)
