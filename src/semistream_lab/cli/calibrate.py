"""The command that measures what reads and the parts of a join cost on this machine."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semistream.core.budget import parse_bytes
from semistream.core.errors import InvalidSettingError, SemistreamError

if TYPE_CHECKING:
    from semistream_lab.cost.calibration import Calibration
    from semistream_lab.cost.request_times import Progress

_DEFAULT_SIZE = "256MB"


def calibrate(
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the profile, as JSON.")],
    master: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Read this paged table instead of a generated one.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Generate a table here to read from; it is removed afterwards.",
            show_default="the temporary folder",
        ),
    ] = None,
    size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The size of the generated table.", show_default=_DEFAULT_SIZE)
    ] = None,
    direct: Annotated[
        bool | None,
        typer.Option(
            "--direct/--no-direct",
            help="Read past the page cache (O_DIRECT), to measure the disk and not memory.",
            show_default="direct where the file system allows it",
        ),
    ] = None,
) -> None:
    """Measure the costs of reads and joins on this machine.

    The result is a file for `bench --profile FILE`.
    """
    if master is not None and (folder is not None or size is not None):
        raise InvalidSettingError("--master contradicts --folder and --size: leave out one or the other.")
    size_bytes = parse_bytes(size or _DEFAULT_SIZE)
    if folder is not None and not folder.is_dir():
        raise InvalidSettingError(f"There is no folder {folder} to generate a table in: make it first.")

    from semistream.cli import json_output
    from semistream.cli.progress import progress
    from semistream_lab.cli import calibrate_rendering
    from semistream_lab.cost.profile_files import save_profile

    json_output.check_writable(out)
    with progress() as reporting:
        calibration = _measured(master, folder, size_bytes, direct, out.stem, reporting.update)
    save_profile(calibration.profile, out, calibration.evidence)
    calibrate_rendering.show(calibration)
    typer.echo(f"The profile is in {out}.", err=True)


def _measured(
    master: Path | None, folder: Path | None, size_bytes: int, direct: bool | None, name: str, report: Progress
) -> Calibration:
    from semistream.master_table import MasterTable
    from semistream_lab.cost.calibration import build_scratch_table, calibrate

    with ExitStack() as cleanup:
        if master is not None:
            table = MasterTable(master)
        else:
            scratch = tempfile.TemporaryDirectory(prefix="semistream-calibrate-", dir=folder)
            table = build_scratch_table(Path(cleanup.enter_context(scratch)) / "master", size_bytes, report)
        try:
            return calibrate(table, name=name, direct=direct, progress=report)
        except SemistreamError as error:
            if direct and "refuses direct reads" in str(error):
                raise InvalidSettingError(
                    f"The file system of {table.path} refuses direct reads: leave out --direct."
                ) from None
            raise
