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
"""The exception that was to end the command has been swallowed, and comes again."""


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
    number = signal.SIGINT if isinstance(raised.exc_value, KeyboardInterrupt) else signal.SIGTERM
    _lost.set()
    again = threading.Timer(_SECONDS_UNTIL_ASKED_AGAIN, os.kill, [os.getpid(), number])
    again.daemon = True
    again.start()
    return True


def _stop(number: int, _frame: FrameType | None) -> None:
    """Raise an exception, so that half-written files are removed; a second signal ends the process at once.

    An exception may come between the taking of a lock and the block that frees it, and then a thread that is waited
    for never ends. Therefore the time to clean up is limited.
    """
    if _lost.is_set():
        _lost.clear()
        _leave(number)
    if _stopping.is_set():
        os._exit(128 + number)
    _stopping.set()
    limit = threading.Timer(_SECONDS_TO_CLEAN_UP, os._exit, [128 + number])
    limit.daemon = True
    limit.start()
    _leave(number)


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
