"""The process's allocators, so that what is freed goes back to the system."""

from __future__ import annotations

import ctypes
import os

import pyarrow as pa

_M_TRIM_THRESHOLD = -1
_TRIM_BYTES = 131_072


def return_freed_memory() -> None:
    """Let freed memory leave the process, unless the user has set up the allocators.

    Arrow's default allocator keeps tens of megabytes of freed memory for later, and so does the C library once large
    blocks have been freed: memory outside of any budget. The choice holds for the whole process and does not concern
    memory that is in use.
    """
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())
    if not any(name.startswith("MALLOC_") for name in os.environ):
        set_option = getattr(ctypes.CDLL(None), "mallopt", None)
        if set_option is not None:
            set_option(_M_TRIM_THRESHOLD, _TRIM_BYTES)
