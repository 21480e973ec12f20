"""Compiles hot loops to machine code once and keeps the result on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile `function` with numba: without the interpreter lock, cached for the next process.

    In an installation that cannot be written to, the cache moves to a temporary folder instead of failing.
    """
    from numba import njit
    from numba.core import config

    compiler = njit(nogil=True, cache=True)
    try:
        return cast(Function, compiler(function))
    except RuntimeError:
        os.environ.setdefault("NUMBA_CACHE_DIR", f"{tempfile.gettempdir()}/semistream-kernels-{os.getuid()}")
        config.reload_config()  # type: ignore[no-untyped-call]
        return cast(Function, compiler(function))
