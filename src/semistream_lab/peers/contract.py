"""What a peer is: something that adds the columns of the master table to a stream, and can be measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from semistream.core.errors import SemistreamError
from semistream_lab.peers.data import Joined, PeerData

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class WrongRowsError(SemistreamError):
    """A peer gave other rows than the master table has."""


class PeerFailedError(SemistreamError):
    """A peer could not be prepared or measured."""


@dataclass(frozen=True)
class Bench:
    """Where peers are measured: the data, and the Spark session if one of them needs it."""

    data: PeerData
    session: SparkSession | None = None

    @property
    def spark(self) -> SparkSession:
        """The session."""
        assert self.session is not None, "a peer on Spark was given no session"
        return self.session


@dataclass
class Turn:
    """What was measured in one turn of a peer, batch by batch; empty or None is unknown."""

    batch_ms: list[float] = field(default_factory=list)
    add_batch_ms: list[float] = field(default_factory=list)
    bytes_read: list[float] = field(default_factory=list)
    cache_hits: list[float] = field(default_factory=list)
    """The share of the rows of a batch that were answered from a cache."""
    peak_process_bytes: int | None = None
    """The most memory that the largest process of the peer has taken so far."""


class Peer(ABC):
    """One way to enrich a stream.

    `prepare` must be called once before anything else, and `clean_up` at the end, also after a failure. `check` and
    `turn` may be called any number of times, from one thread. A peer must not see the settings of another.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    """What it is, in one line."""
    on_spark: ClassVar[bool] = True
    joins: ClassVar[bool] = True
    """False for a bound that leaves the rows as they are."""
    keeps_to_memory: ClassVar[bool] = False
    """Whether the memory of the situation limits it."""
    reads_all: ClassVar[bool] = False
    """Whether each batch goes through the whole master table, so that fewer of them are measured."""

    def why_unavailable(self) -> str | None:
        """Return one sentence that says what is missing, or None if the peer can run here."""
        return None

    @abstractmethod
    def prepare(self, bench: Bench) -> None:
        """Make what the peer joins with; not measured."""

    @abstractmethod
    def check(self, bench: Bench, first_row: int, batches: int) -> Joined:
        """Join the first rows from a position of the stream on and return what came out."""

    @abstractmethod
    def turn(self, bench: Bench, first_row: int, dropped: int, batches: int) -> Turn:
        """Run batches from a position of the stream on and measure those after the dropped ones."""

    def clean_up(self) -> None:  # noqa: B027 - most have nothing there
        """Remove what lies outside of the data's folder; must work after a failed or missing `prepare`."""
