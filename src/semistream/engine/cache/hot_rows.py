"""Master tuples on their way from one cache to another."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from semistream.core.arrays import Int32Array, Int64Array


@dataclass(frozen=True)
class HotRows:
    """Master tuples that a cache held, the most used ones first."""

    codes: Int64Array
    frequencies: Int32Array
    rows: pa.RecordBatch | None
    """The cached columns of each code; None if none are cached."""
    absent_codes: Int64Array
    """Keys that the master table does not have."""
