"""Master rows that were read before the chunk that needs them is looked up, together with those of other tables."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from semistream.core.arrays import Int64Array
from semistream.store.found_rows import FoundRows


@dataclass(frozen=True)
class FetchedAhead:
    """The rows of distinct ascending codes."""

    codes: Int64Array
    found: FoundRows

    def rows_of(self, codes: Int64Array) -> FoundRows | None:
        """Return the rows of distinct ascending codes; None unless all of them were read."""
        places = np.searchsorted(self.codes, codes)
        if len(codes) and (places[-1] >= len(self.codes) or not np.array_equal(self.codes[places], codes)):
            return None
        chosen = places if self.found.chosen is None else self.found.chosen[places]
        return replace(self.found, code_count=len(codes), chosen=chosen)
