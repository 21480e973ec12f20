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

_SECONDS_TO_CLEAN_UP = 10.0
_stopping = threading.Event()


def install() -> None:
    """Handle both signals from now on; must be called in the main thread."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)


def _stop(number: int, _frame: FrameType | None) -> None:
    """Raise an exception, so that half-written files are removed; a second signal ends the process at once.

    An exception may come between the taking of a lock and the block that frees it, and then a thread that is waited
    for never ends. Therefore the time to clean up is limited.
    """
    if _stopping.is_set():
        os._exit(128 + number)
    _stopping.set()
    limit = threading.Timer(_SECONDS_TO_CLEAN_UP, os._exit, [128 + number])
    limit.daemon = True
    limit.start()
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
