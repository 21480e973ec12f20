"""The page of a comparison in Markdown, and the files around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from semistream.core.budget import format_bytes
from semistream.core.flat_json import as_json
from semistream_lab.cost.machine import Machine
from semistream_lab.peers import chart
from semistream_lab.peers.data import Situation
from semistream_lab.peers.peer_results import BOUND, OURS, PeerResult, fastest_first, ratio, rows

_TWO_PLACES = 0.1
COLUMNS = (
    "Peer",
    "Rows/s",
    "Median ms",
    "p99 ms",
    "addBatch ms",
    "Read a batch",
    "From cache",
    "Process memory",
    f"× {BOUND}",
    f"× {OURS}",
)


def cells(result: PeerResult, results: Sequence[PeerResult]) -> list[str]:
    """Return a peer's line of the table, in the order of COLUMNS; what is unknown stays empty."""
    return [
        result.peer,
        f"{result.rows_per_second:,.0f}",
        f"{result.median_ms:,.1f}",
        f"{result.p99_ms:,.1f}",
        _shown(result.add_batch_ms, "{:,.1f}"),
        "" if result.bytes_read_a_batch is None else format_bytes(result.bytes_read_a_batch),
        _shown(result.cache_hit_rate, "{:.0%}"),
        "" if result.peak_process_bytes is None else format_bytes(result.peak_process_bytes),
        _times(ratio(result, results, BOUND)),
        _times(ratio(result, results, OURS)),
    ]


def markdown(
    results: Sequence[PeerResult],
    left_out: Mapping[str, str],
    situation: Situation,
    machine: Machine,
    spark_version: str,
) -> str:
    """Return the page: the situation, the table (the fastest first), what each peer is, and who is missing."""
    results = fastest_first(results)
    lines = [
        "# semistream and its peers",
        "",
        f"{situation.master_rows:,} master rows, {situation.batch_rows:,} rows a batch, Zipf exponent "
        f"{situation.zipf:g}, {format_bytes(situation.memory_bytes)} a Python worker where it can be limited; "
        f"{machine.cpu}, {situation.cores} of {machine.cores} cores, {machine.file_system}, PySpark {spark_version}. "
        "Every peer that joins gave the same rows.",
        "",
        "![Rows per second](peers.png)",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---|" + "---:|" * (len(COLUMNS) - 1),
        *(f"| {' | '.join(cells(result, results))} |" for result in results),
        "",
        "Rows/s are the rows of a batch by its median time. Process memory is the most that the largest Python worker, "
        "or a peer's own process, has taken with all its code. Where rows do not come in batches, a batch is as many "
        "rows as one has elsewhere, and its time the mean of a turn.",
        "",
        *(f"- **{result.peer}**: {result.summary} ({result.batches} times measured)." for result in results),
    ]
    if left_out:
        lines += ["", "Left out:", "", *(f"- **{name}**: {reason}" for name, reason in left_out.items())]
    return "\n".join(lines) + "\n"


def write(
    folder: Path,
    results: Sequence[PeerResult],
    left_out: Mapping[str, str],
    situation: Situation,
    machine: Machine,
    spark_version: str,
) -> None:
    """Write peers.md, peers.json, and peers.png and peers.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "peers.json").write_text(as_json(rows(results, machine, spark_version)), encoding="utf-8")
    for ending, picture in chart.draw(results).items():
        (folder / f"peers.{ending}").write_bytes(picture)
    page = markdown(results, left_out, situation, machine, spark_version)
    (folder / "peers.md").write_text(page, encoding="utf-8")


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def _times(value: float | None) -> str:
    return _shown(value, "{:.2f}" if value is not None and value >= _TWO_PLACES else "{:.2g}")
