"""Compiles hot loops to machine code once and keeps the result on disk."""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile `function` with numba: without the interpreter lock, cached for the next process.

    In an installation that cannot be written to, the cache moves to a temporary folder of the user instead of failing.
    """
    from numba import njit
    from numba.core import config

    _watch_compilations()
    compiler = njit(nogil=True, cache=True)
    try:
        return cast(Function, compiler(function))
    except RuntimeError:
        os.environ.setdefault("NUMBA_CACHE_DIR", str(_private_folder()))
        config.reload_config()  # type: ignore[no-untyped-call]
        return cast(Function, compiler(function))


def load_compiler() -> None:
    """Load what all kernels need; the first kernel that is called does it otherwise, and it takes a while."""
    _first_kernel()(0)


@cache
def _first_kernel() -> Callable[[int], int]:
    return kernel(_same)


def _same(number: int) -> int:
    return number


class _Compilations:
    """What has been compiled in this process and not been taken from the cache."""

    count = 0

    def notify(self, event: Any) -> None:
        """Say once that compiling takes a while, because a first join is silent for so long."""
        if not event.is_start or not event.data["dispatcher"].py_func.__module__.startswith("semistream"):
            return
        if not self.count:
            logging.getLogger("semistream").warning(
                "semistream compiles its kernels, once for this installation; this takes some ten seconds. "
                "`semistream warmup` does it beforehand."
            )
        self.count += 1


_COMPILATIONS = _Compilations()


def compiled_count() -> int:
    """Return how many kernels were compiled in this process, and not loaded."""
    return _COMPILATIONS.count


@cache
def _watch_compilations() -> None:
    from numba.core import event

    event.Listener.register(_Compilations)
    event.register("numba:compile", _COMPILATIONS)  # type: ignore[no-untyped-call]


def _private_folder() -> Path:
    """Return a temporary folder that nobody else can write to: what is cached in it will be run."""
    folder = Path(tempfile.gettempdir()) / f"semistream-kernels-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="semistream-kernels-"))
    if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077:
        return folder
    return Path(tempfile.mkdtemp(prefix="semistream-kernels-"))
