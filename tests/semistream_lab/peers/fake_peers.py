"""Peers that need neither Spark nor a library: they join by the formula of the data, or fail on purpose."""

from __future__ import annotations

from pathlib import Path

from semistream_lab.peers.contract import Bench, Peer, Turn
from semistream_lab.peers.data import PAYLOAD, STREAM_COLUMNS, Joined, PeerData, Situation, stream_rows, with_payload


class FakePeer(Peer):
    """Gives the right rows, with batches that always take the same time."""

    summary = "made up"
    on_spark = False

    def __init__(self, name: str, batch_ms: float = 10.0) -> None:
        self.name = name  # type: ignore[misc]
        self.batch_ms = batch_ms
        self.positions: list[int] = []
        self.cleaned = 0

    def prepare(self, bench: Bench) -> None:
        """Do nothing."""

    def check(self, bench: Bench, first_row: int, batches: int) -> Joined:
        """Join by the formula."""
        situation = bench.data.situation
        rows = stream_rows(situation, first_row, batches * situation.batch_rows)
        return Joined.of(with_payload(rows), (*STREAM_COLUMNS, *PAYLOAD))

    def turn(self, bench: Bench, first_row: int, dropped: int, batches: int) -> Turn:
        """Return as many times as were asked for."""
        del bench, dropped
        self.positions.append(first_row)
        return Turn(batch_ms=[self.batch_ms] * batches)

    def clean_up(self) -> None:
        """Count how often it was called."""
        self.cleaned += 1


class WrongPeer(FakePeer):
    """Gives the rows of other keys, very fast."""

    def check(self, bench: Bench, first_row: int, batches: int) -> Joined:
        """Join rows of another part of the stream."""
        return super().check(bench, first_row + 1, batches)


class ShortPeer(FakePeer):
    """Loses a batch."""

    def check(self, bench: Bench, first_row: int, batches: int) -> Joined:
        """Join too few rows."""
        return super().check(bench, first_row, batches - 1)


class FailingPeer(FakePeer):
    """Fails in its second turn with an error that holds a password."""

    def turn(self, bench: Bench, first_row: int, dropped: int, batches: int) -> Turn:
        """Fail at the second time."""
        if self.positions:
            raise RuntimeError("cannot reach postgresql://me:secret@127.0.0.1")
        return super().turn(bench, first_row, dropped, batches)


def small_bench(folder: Path, master_rows: int = 500, batch_rows: int = 100, zipf: float = 1.0) -> Bench:
    """Return a bench without Spark."""
    return Bench(PeerData(Situation.of(master_rows, batch_rows, "16MB", zipf, 2), folder))
