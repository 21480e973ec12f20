"""The command that measures semistream beside what users would pick instead."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semistream.core.errors import InvalidSettingError, SemistreamError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DATA = "Data"
_MEASURE = "How to measure"
_POSTGRESQL, _REDIS = "SEMISTREAM_PEERS_POSTGRESQL", "SEMISTREAM_PEERS_REDIS"


def peers(
    only: Annotated[
        str, typer.Option(metavar="NAMES", help="Names separated by commas.", show_default="all that can run")
    ] = "",
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory of each Python worker, where a peer can be limited.")
    ] = "64MB",
    master_rows: Annotated[
        int, typer.Option(metavar="N", help="Rows of the master table.", rich_help_panel=_DATA)
    ] = 2_000_000,
    batch_rows: Annotated[int, typer.Option(metavar="N", help="Rows of a batch.", rich_help_panel=_DATA)] = 10_000,
    zipf: Annotated[
        float, typer.Option(metavar="EXPONENT", help="How skewed the keys are; 0 is uniform.", rich_help_panel=_DATA)
    ] = 1.0,
    page_bytes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Bytes of a page of semistream's master table.",
            show_default="4096; 8192 for tables above 1 GiB",
            rich_help_panel=_DATA,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep the master tables here for the next time.",
            show_default="a temporary folder",
            rich_help_panel=_DATA,
        ),
    ] = None,
    turns: Annotated[
        int, typer.Option(metavar="N", help="How many turns each peer has.", rich_help_panel=_MEASURE)
    ] = 2,
    batches: Annotated[
        int, typer.Option(metavar="N", help="Measured batches of a turn.", rich_help_panel=_MEASURE)
    ] = 20,
    slow_batches: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="The same, for peers that read the whole master table in each batch.",
            rich_help_panel=_MEASURE,
        ),
    ] = 5,
    dropped: Annotated[
        int, typer.Option(metavar="N", help="How many first batches of a turn do not count.", rich_help_panel=_MEASURE)
    ] = 10,
    cores: Annotated[
        int | None,
        typer.Option(metavar="N", help="Tasks side by side.", show_default="all", rich_help_panel=_MEASURE),
    ] = None,
    list_only: Annotated[bool, typer.Option("--list", help="Show the peers and whether they can run here.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a page in Markdown, figures and the results there.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the results as a list of flat objects.")
    ] = None,
) -> None:
    """Compare semistream with the alternatives.

    All join the same stream with the same master table. Spark's own joins, look-ups written by hand, joins in memory
    and Flink take turns. A peer is measured only if it gives the right rows. PostgreSQL and Redis take part if
    SEMISTREAM_PEERS_POSTGRESQL and SEMISTREAM_PEERS_REDIS give their addresses; what is written there is removed
    again. Flink takes part if SEMISTREAM_PEERS_FLINK_PYTHON names a Python that has it and SEMISTREAM_PEERS_FLINK_JARS
    the folder of its JDBC connector. Needs Java 17 or later.
    """
    from semistream.cli import json_output
    from semistream.cli.progress import progress
    from semistream_lab.cli import peers_rendering
    from semistream_lab.cost.machine import this_machine
    from semistream_lab.peers import comparison_report, peer_results
    from semistream_lab.peers.comparison import TurnPlan, compare
    from semistream_lab.peers.contract import Bench
    from semistream_lab.peers.data import PeerData, Situation
    from semistream_lab.peers.flink.installation import JARS_VARIABLE, PYTHON_VARIABLE, FlinkInstallation
    from semistream_lab.peers.peers_by_name import Addresses, all_peers, chosen_peers

    addresses = Addresses(
        os.environ.get(_POSTGRESQL) or None,
        os.environ.get(_REDIS) or None,
        FlinkInstallation(_path_of(PYTHON_VARIABLE), _path_of(JARS_VARIABLE)),
    )
    if list_only:
        peers_rendering.show_peers(all_peers(addresses))
        return
    cores = cores or len(os.sched_getaffinity(0))
    situation = Situation.of(master_rows, batch_rows, memory, zipf, cores, page_bytes)
    plan = TurnPlan(turns, batches, slow_batches, dropped)
    choice = chosen_peers(only, addresses)
    _check_places(out, json_file)
    peers_rendering.show_left_out(choice.left_out)
    needs_spark = any(peer.on_spark for peer in choice.peers)
    with _folder(data) as folder, _session(situation.cores, memory, needed=needs_spark) as session:
        with progress() as reporting:
            bench = Bench(PeerData(situation, folder), session)
            compared = compare(choice.peers, bench, plan, reporting.update)
        machine, version = this_machine(folder), "" if session is None else session.version
    if compared.results:
        if json_file is not None:
            json_output.write_json(json_file, peer_results.rows(compared.results, machine, version))
        if out is not None:
            comparison_report.write(out, compared.results, choice.left_out, situation, machine, version)
        peers_rendering.show_results(compared.results, out)
    _raise(compared.failures)


def _path_of(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else None


def _check_places(out: Path | None, json_file: Path | None) -> None:
    from semistream.cli import json_output

    if json_file is not None:
        json_output.check_writable(json_file)
    if out is not None and out.exists() and not out.is_dir():
        raise InvalidSettingError(f"--out must name a folder, but {out} is a file: name another place.")


def _raise(failures: dict[str, SemistreamError]) -> None:
    """Raise an error that names every peer that failed, with the first of them as its cause."""
    if failures:
        reasons = " ".join(f"{name}: {error}" for name, error in failures.items())
        raise SemistreamError(reasons) from next(iter(failures.values()))


@contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    import tempfile

    if data is not None:
        data.mkdir(parents=True, exist_ok=True)
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="semistream-peers-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def _session(cores: int, memory: str, *, needed: bool) -> Iterator[SparkSession | None]:
    if not needed:
        yield None
        return
    from semistream.cli import interruption
    from semistream_lab.peers.peer_session import peers_session

    with interruption.silent_log(), peers_session(cores, memory) as spark:
        interruption.install()  # Spark has put a handler of its own for Ctrl-C
        yield spark
