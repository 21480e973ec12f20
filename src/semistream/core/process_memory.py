"""The process's allocators, so that what is freed goes back to the system."""

from __future__ import annotations

import ctypes
import os

import pyarrow as pa

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
_MIN_BYTES = 131_072
_MAX_BYTES = 32 * 2**20
_SHARE = 16


def return_freed_memory(budget_bytes: int) -> None:
    """Let freed memory leave the process, all but about a sixteenth of the budget, unless the user has set this up.

    Arrow's default allocator keeps tens of megabytes of freed memory for later, and so does the C library once large
    blocks have been freed: memory outside of any budget. To return every small block would cost more time than the
    join itself, so some may stay. The choice holds for the whole process and does not concern memory in use.
    """
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())
    if not any(name.startswith("MALLOC_") for name in os.environ):
        set_option = getattr(ctypes.CDLL(None), "mallopt", None)
        if set_option is not None:
            kept = min(max(budget_bytes // _SHARE, _MIN_BYTES), _MAX_BYTES)
            for option in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
                set_option(option, kept)
            # Each thread would keep so much in an arena of its own, and what one frees no other could use.
            set_option(_M_ARENA_MAX, 1)
