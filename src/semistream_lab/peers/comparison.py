"""Runs peers side by side: prepares each, checks its rows, and measures them in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream_lab.peers.contract import Bench, Peer, PeerFailedError, Turn, WrongRowsError
from semistream_lab.peers.data import Joined, expected
from semistream_lab.peers.peer_results import PeerResult

Report = Callable[[str, int, int | None], None]
"""Is told what is being done, how many steps are done and how many there are."""

CHECKED_BATCHES = 2
MAX_BATCHES = 900  # fewer than the session keeps the progress of
_STRIDE = 50_000_000  # so that no turn sees the rows of another: a warm cache must not know the answers


@dataclass(frozen=True)
class TurnPlan:
    """How often peers are measured: in turns (A-B-C-A-B-C), because machines and compilers warm up."""

    turns: int
    batches: int
    slow_batches: int
    """For peers that go through the whole master table in every batch."""
    dropped: int
    """Batches at the start of each turn that do not count."""

    def __post_init__(self) -> None:
        for name in ("turns", "batches", "slow_batches"):
            if getattr(self, name) < 1:
                raise InvalidSettingError(f"--{name.replace('_', '-')} must be at least 1.")
        if self.dropped < 0:
            raise InvalidSettingError("--dropped must be 0 or more.")
        if self.dropped + max(self.batches, self.slow_batches) > MAX_BATCHES:
            raise InvalidSettingError(
                f"A turn has at most {MAX_BATCHES} batches, including those dropped: take more turns."
            )

    def batches_of(self, peer: Peer) -> int:
        """Return how many batches of a turn count."""
        return self.slow_batches if peer.reads_all else self.batches


@dataclass(frozen=True)
class Comparison:
    """What came out: results of peers that gave the right rows, and an error for each of the others."""

    results: list[PeerResult]
    failures: dict[str, SemistreamError]


def compare(peers: Sequence[Peer], bench: Bench, plan: TurnPlan, report: Report) -> Comparison:
    """Measure peers; one that fails or gives wrong rows is set aside, and the others go on."""
    bench.data.folder.mkdir(parents=True, exist_ok=True)
    race = _Race(peers, bench, plan, report)
    try:
        race.prepare_and_check()
        for turn in range(plan.turns):
            race.run_turn(turn)
        return Comparison(race.results(), race.failures)
    finally:
        for peer in peers:
            peer.clean_up()


class _Race:
    """The peers that are still in it, with what was measured so far."""

    def __init__(self, peers: Sequence[Peer], bench: Bench, plan: TurnPlan, report: Report) -> None:
        self._peers, self._bench, self._plan, self._report = peers, bench, plan, report
        self._checked: dict[str, Joined] = {}
        self._turns: dict[str, list[Turn]] = {peer.name: [] for peer in peers}
        self._done = 0
        self.failures: dict[str, SemistreamError] = {}

    def prepare_and_check(self) -> None:
        """Prepare every peer and compare the rows that it gives with the right ones."""
        for peer in self._peers:
            with self._step(peer, f"{peer.name}: preparing and checking"):
                peer.prepare(self._bench)
                self._checked[peer.name] = checked(peer, self._bench)

    def run_turn(self, turn: int) -> None:
        """Measure every peer once."""
        for peer in self._peers:
            with self._step(peer, f"{peer.name}: turn {turn + 1} of {self._plan.turns}"):
                if peer.name not in self.failures:
                    first_row, count = (turn + 1) * _STRIDE, self._plan.batches_of(peer)
                    self._turns[peer.name].append(peer.turn(self._bench, first_row, self._plan.dropped, count))

    def results(self) -> list[PeerResult]:
        """Return what was measured of the peers that did not fail."""
        return [
            PeerResult.of(peer, self._bench.data.situation, self._turns[peer.name], self._checked[peer.name])
            for peer in self._peers
            if peer.name not in self.failures
        ]

    @contextmanager
    def _step(self, peer: Peer, what: str) -> Iterator[None]:
        self._report(what, self._done, len(self._peers) * (1 + self._plan.turns))
        try:
            yield
        except SemistreamError as error:
            self.failures[peer.name] = error
        except Exception as error:
            # Errors of Spark and of databases repeat plans and addresses, so that only their kind is told.
            failed = PeerFailedError(f"It failed with {type(error).__name__}: run it again with --debug.")
            failed.__cause__ = error
            self.failures[peer.name] = failed
        self._done += 1


def checked(peer: Peer, bench: Bench) -> Joined:
    """Return what a peer gives for the first batches, or raise WrongRowsError if that is not what it should be."""
    rows = CHECKED_BATCHES * bench.data.situation.batch_rows
    right = expected(bench.data.situation, 0, rows, joined=peer.joins)
    given = peer.check(bench, 0, CHECKED_BATCHES)
    if given.rows != right.rows:
        raise WrongRowsError(f"It gave {given.rows:,} rows instead of {right.rows:,} and was not measured.")
    if given.checksum != right.checksum:
        raise WrongRowsError("It gave other rows than the master table has and was not measured.")
    return given
