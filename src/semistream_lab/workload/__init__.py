"""Streams that only research needs: keys that drift or repeat, recorded traces, and real data.

Real data is in modules of its own: `tpch`, `clouds` and `flights`. What the product generates itself is in
`semistream.generator`.
"""

from semistream_lab.workload.drift import DriftingKeys
from semistream_lab.workload.repeated_keys import RepeatedKeys
from semistream_lab.workload.traces import record, replay

__all__ = ["DriftingKeys", "RepeatedKeys", "record", "replay"]
