"""Rows that wait from one micro-batch to the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import BoolArray, Float64Array, Int32Array, Int64Array


@dataclass(frozen=True)
class WaitingRows:
    """Rows that nothing has answered yet, in the order in which they came."""

    codes: Int64Array
    pages: Int32Array
    """The page of the master table that each needs."""
    events: Float64Array
    """When each arrived in the stream."""
    arrivals: Float64Array
    """When the micro-batch began that each came with."""

    @classmethod
    def none(cls) -> WaitingRows:
        """Return no rows."""
        whole, real = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
        return cls(whole, whole.astype(np.int32), real, real)

    def __len__(self) -> int:
        return len(self.codes)

    def where(self, chosen: BoolArray | Int64Array) -> WaitingRows:
        """Return some of the rows."""
        return WaitingRows(self.codes[chosen], self.pages[chosen], self.events[chosen], self.arrivals[chosen])

    def then(self, others: WaitingRows) -> WaitingRows:
        """Return these rows and then others."""
        return WaitingRows(
            np.concatenate((self.codes, others.codes)),
            np.concatenate((self.pages, others.pages)),
            np.concatenate((self.events, others.events)),
            np.concatenate((self.arrivals, others.arrivals)),
        )
