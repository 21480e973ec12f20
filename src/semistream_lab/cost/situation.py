"""What a cost model is told: the master table, the stream and the memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

from semistream.core.errors import InvalidSettingError


@dataclass(frozen=True)
class Situation:
    """A saturated stream of skewed keys over a master table, and the memory that its join has.

    Keys are drawn as `semistream.generator.ZipfKeys` draws them by default: by Zipf's law, rank 1 being the first row
    of the table (`ranks` "sorted") or the rows being shuffled ("shuffled"). `accounting` says how memory is counted.
    """

    master_rows: int  # R_t
    memory_bytes: int  # M
    exponent: float  # e
    ranks: str = "sorted"
    row_bytes: int = 120  # v_R
    page_bytes: int = 8192  # v_P
    accounting: str = "papers"

    def __post_init__(self) -> None:
        for name in ("master_rows", "memory_bytes", "row_bytes", "page_bytes"):
            if getattr(self, name) < 1:
                raise InvalidSettingError(f"{name} must be at least 1, but is {getattr(self, name)}.")
        if not (math.isfinite(self.exponent) and self.exponent >= 0):
            raise InvalidSettingError(f"The Zipf exponent must be 0 or more, but is {self.exponent:g}.")
        if self.ranks not in ("sorted", "shuffled"):
            raise InvalidSettingError(f"{self.ranks!r} is not an order of ranks: choose sorted or shuffled.")
        if self.accounting not in ("papers", "real"):
            raise InvalidSettingError(f"{self.accounting!r} is not a way to account for memory: choose real or papers.")

    @property
    def rows_per_page(self) -> int:
        """The rows of a full page."""
        return max(1, self.page_bytes // self.row_bytes)
