"""Ends a command on Ctrl-C or SIGTERM: cleanly if possible, but always."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_SECONDS_TO_CLEAN_UP = 10.0
_SECONDS_UNTIL_ASKED_AGAIN = 0.02
_stopping = threading.Event()
_lost = threading.Event()
"""The exception that was to end the command has been swallowed or must wait, and comes again."""
_OF_THE_COMPILER = ("numba.", "llvmlite.")
"""Loads and makes machine code by calls that native code takes up again, and an exception there ends in a crash."""


def install() -> None:
    """Handle both signals from now on; must be called in the main thread."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    others = sys.unraisablehook
    sys.unraisablehook = lambda raised: _ask_again(raised) or others(raised)


def _ask_again(raised: sys.UnraisableHookArgs) -> bool:
    """Send the signal once more if its exception came while an object was given up, where Python drops exceptions."""
    if not _stopping.is_set() or not isinstance(raised.exc_value, KeyboardInterrupt | SystemExit):
        return False
    _send_again(signal.SIGINT if isinstance(raised.exc_value, KeyboardInterrupt) else signal.SIGTERM)
    return True


def _send_again(number: int) -> None:
    _lost.set()
    again = threading.Timer(_SECONDS_UNTIL_ASKED_AGAIN, os.kill, [os.getpid(), number])
    again.daemon = True
    again.start()


def _stop(number: int, frame: FrameType | None) -> None:
    """Raise an exception, so that half-written files are removed; a second signal ends the process at once.

    An exception may come between the taking of a lock and the block that frees it, and then a thread that is waited
    for never ends. Therefore the time to clean up is limited. While kernels are compiled or loaded the exception waits.
    """
    if _lost.is_set():
        _lost.clear()
    elif _stopping.is_set():
        os._exit(128 + number)
    else:
        _stopping.set()
        limit = threading.Timer(_SECONDS_TO_CLEAN_UP, os._exit, [128 + number])
        limit.daemon = True
        limit.start()
    if _is_compiling(frame):
        _send_again(number)
    else:
        _leave(number)


def _is_compiling(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(_OF_THE_COMPILER):
            return True
        frame = frame.f_back
    return False


def _leave(number: int) -> NoReturn:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


@contextmanager
def silent_log() -> Iterator[None]:
    """Keep libraries from logging: on Ctrl-C the connection to Java would show a traceback, and errors are raised."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
