"""The process's allocators, so that what is freed goes back to the system."""

from __future__ import annotations

import ctypes
import os

import pyarrow as pa

_OPTIONS = {-8: 1, -3: 65_536, -1: 131_072}
"""Of the C library: one arena for all threads, blocks of their own from 64 KiB on, and free memory returned early."""


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
            for option, value in _OPTIONS.items():
                set_option(option, value)
