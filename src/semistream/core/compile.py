"""Compiles hot loops to machine code once and keeps the result on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile `function` with numba: without the interpreter lock, cached for the next process.

    In an installation that cannot be written to, the cache moves to a temporary folder instead of failing.
    """
    from numba import njit

    try:
        compiled: Function = njit(nogil=True, cache=True)(function)
    except RuntimeError:
        os.environ.setdefault("NUMBA_CACHE_DIR", str(tempfile.gettempdir()) + f"/semistream-kernels-{os.getuid()}")
        from numba.core import config

        config.reload_config()
        compiled = njit(nogil=True, cache=True)(function)
    return compiled
