"""What a cost model is told: the master table, the stream and the memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from semistream.core.errors import InvalidSettingError
from semistream.generator import ZipfKeys


@dataclass(frozen=True)
class Situation:
    """A saturated stream of skewed keys over a master table, and the memory that its join has.

    Keys are drawn as `semistream.generator.ZipfKeys` draws them: by Zipf's law (`law` "discrete") or by the papers'
    generator ("integral"), rank 1 being the first row of the table (`ranks` "sorted") or the rows being shuffled
    ("shuffled"). `accounting` says how memory is counted.
    """

    master_rows: int  # R_t
    memory_bytes: int  # M
    exponent: float  # e
    ranks: str = "sorted"
    row_bytes: int = 120  # v_R
    page_bytes: int = 8192  # v_P
    accounting: str = "papers"
    law: Literal["discrete", "integral"] = "discrete"

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

    def keys(self, seed: int = 0) -> ZipfKeys:
        """Return the keys of the stream."""
        ranks: Literal["sorted", "shuffled"] = "sorted" if self.ranks == "sorted" else "shuffled"
        return ZipfKeys(self.master_rows, self.exponent, seed=seed, ranks=ranks, law=self.law)

    @property
    def rows_per_page(self) -> int:
        """The rows of a full page."""
        return max(1, self.page_bytes // self.row_bytes)
