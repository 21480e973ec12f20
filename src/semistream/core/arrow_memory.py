"""Arrow's memory, so that what is freed goes back to the system."""

from __future__ import annotations

import os

import pyarrow as pa


def return_freed_memory() -> None:
    """Let Arrow allocate from the system's allocator, unless the user has chosen another one.

    Arrow's default allocator keeps tens of megabytes of freed memory for later, outside of any budget. The choice
    holds for the whole process and does not concern memory that is in use.
    """
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())
