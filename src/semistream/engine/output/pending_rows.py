"""Output rows that have been made, and answers of which more are to be made."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.engine.output.answers import Answer


@dataclass(frozen=True)
class MadeRows:
    """Output rows that have been made, but for stream rows that are still in their slots."""

    tuples: Int64Array
    stream: pa.RecordBatch | None
    """The stream rows; None if `tuples` are the slots that they are in."""
    master: pa.RecordBatch | None
    done: Int64Array
    """The slots that are free when these rows have been taken out."""
    size_bytes: int


@dataclass
class PendingRows:
    """What has been found and is not yet handed out: rows that have been made, by kind, and answers to make more of."""

    waited: deque[MadeRows] = field(default_factory=deque)
    arrived: deque[MadeRows] = field(default_factory=deque)
    unmatched_waited: deque[MadeRows] = field(default_factory=deque)
    unmatched_arrived: deque[MadeRows] = field(default_factory=deque)
    unfinished: deque[Answer] = field(default_factory=deque)
    size_bytes: int = 0
    slots: int = 0

    def queue(self, *, waited: bool, matched: bool) -> deque[MadeRows]:
        """Return the rows of a kind."""
        if matched:
            return self.waited if waited else self.arrived
        return self.unmatched_waited if waited else self.unmatched_arrived

    def made(self) -> deque[MadeRows] | None:
        """Return the rows of the first kind of which there are any."""
        kinds = (self.waited, self.arrived, self.unmatched_waited, self.unmatched_arrived)
        return next((rows for rows in kinds if rows), None)
