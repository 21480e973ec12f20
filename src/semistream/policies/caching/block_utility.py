"""Which blocks of master data stay in memory."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int64Array


class BlockUtility:
    """Counts how many stream tuples each block has served, with ageing, and names the blocks worth keeping."""

    def __init__(self, page_group_count: int, ageing: float = 0.9) -> None:
        self._utility = np.zeros(max(1, page_group_count), dtype=np.float32)
        self._ageing = ageing

    @property
    def size_bytes(self) -> int:
        """The memory of the counters."""
        return self._utility.nbytes

    def served(self, page_group: int, tuples: int) -> None:
        """Credit a block with tuples it has answered."""
        self._utility[page_group] += tuples

    def age(self) -> None:
        """Let older merits count less, so that a drifting stream is followed."""
        self._utility *= self._ageing

    def least_useful(self, page_groups: Int64Array) -> int:
        """Return the block of least utility among `page_groups`."""
        return int(page_groups[int(self._utility[page_groups].argmin())])

    def of(self, page_group: int) -> float:
        """Return the utility of one block."""
        return float(self._utility[page_group])
