"""Calls that wait for something far away, done at the same time."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


def side_by_side(first: Callable[[], T], second: Callable[[], U]) -> tuple[T, U]:
    """Return what two calls return, the second of which is done in a thread; an error is raised when both are done."""
    of_second: list[U] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            of_second.append(second())
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        of_first = first()
    finally:
        thread.join()
    if errors:
        raise errors[0]
    return of_first, of_second[0]


def all_at_once(calls: list[Callable[[], None]]) -> None:
    """Do all calls, each in a thread but for the first; the first error is raised when all are done."""
    if len(calls) > 1:
        side_by_side(calls[0], lambda: all_at_once(calls[1:]))
    elif calls:
        calls[0]()
