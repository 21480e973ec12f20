"""The research around semistream: workloads, cost models, the tuner, the papers' experiments, peers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from semistream.core.extras import require

if TYPE_CHECKING:
    from semistream_lab.cost.table_tuning import parameters_for

require("matplotlib", extra="lab", purpose="The lab")

__all__ = ["parameters_for"]


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that a command line that only prints help does not wait for Arrow and Numba.
    if name not in __all__:
        raise AttributeError(f"module 'semistream_lab' has no attribute {name!r}")
    from semistream_lab.cost import table_tuning

    return getattr(table_tuning, name)
