"""semistream without Spark: `join` of Arrow batches in a process of its own."""

from __future__ import annotations

from typing import Any

from semistream_lab.peers import own_process
from semistream_lab.peers.contract import Bench, Peer, Turn
from semistream_lab.peers.data import Joined
from semistream_lab.peers.paged_master import paged_master

_PROCESS = "semistream_lab.peers.batch_join_process"


class BatchJoin(Peer):
    """semistream's engine alone; rows leave when they are answered, so that a turn gives one mean time of a batch."""

    name = "join"
    summary = "semistream without Spark: join of Arrow batches with its default algorithm"
    on_spark = False
    keeps_to_memory = True

    def prepare(self, bench: Bench) -> None:
        """Build the master table in pages."""
        self._master = paged_master(bench.data)

    def check(self, bench: Bench, first_row: int, batches: int) -> Joined:
        """Join the first rows from a position of the stream on and return what came out."""
        measured = self._run(bench, {"first_row": first_row, "checked": batches, "dropped": 0, "batches": 0})
        return Joined(measured["rows"], measured["checksum"])

    def turn(self, bench: Bench, first_row: int, dropped: int, batches: int) -> Turn:
        """Run batches from a position of the stream on and measure those after the dropped ones."""
        measured = self._run(bench, {"first_row": first_row, "checked": 0, "dropped": dropped, "batches": batches})
        return Turn(
            batch_ms=[measured["batch_ms"]],
            bytes_read=[measured["bytes_read"]],
            cache_hits=[measured["cache_hits"]],
            peak_process_bytes=measured["peak_bytes"],
        )

    def _run(self, bench: Bench, asked: dict[str, int]) -> dict[str, Any]:
        order = {"master": str(self._master), "situation": vars(bench.data.situation), **asked}
        return own_process.run(_PROCESS, order)
