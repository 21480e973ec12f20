"""What a task does at each moment: it works on its own, waits for rows, or has handed rows on."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa

_WORK, _INPUT, _OUTPUT = range(3)


class Stopwatch(Iterator[pa.RecordBatch]):
    """Measures the time a task spends on its own, in taking batches, and in handing rows on.

    It begins with the task's own work. A task with several dimensions has a stopwatch for each.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch] | None = None) -> None:
        self._batches = batches if batches is not None else iter(())
        self._spent = [0.0, 0.0, 0.0]
        self._doing = _WORK
        self._since = time.perf_counter()

    @property
    def seconds(self) -> float:
        """The time that the task has spent on its own so far."""
        self._turn_to(self._doing)
        return self._spent[_WORK]

    @property
    def input_seconds(self) -> float:
        """The time in which batches were taken."""
        self._turn_to(self._doing)
        return self._spent[_INPUT]

    @property
    def output_seconds(self) -> float:
        """The time in which rows were handed on."""
        self._turn_to(self._doing)
        return self._spent[_OUTPUT]

    def __next__(self) -> pa.RecordBatch:
        with Doing(self, _INPUT):
            return next(self._batches)

    def taking(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches of another step, measured as they are taken."""
        while True:
            with Doing(self, _INPUT):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def handing_on(self) -> Doing:
        """Return a context in which rows are handed on."""
        return Doing(self, _OUTPUT)

    def work(self) -> None:
        """Begin to work."""
        self._turn_to(_WORK)

    def wait(self) -> None:
        """Begin to wait for rows."""
        self._turn_to(_INPUT)

    def hand_on(self) -> None:
        """Begin to leave rows to others."""
        self._turn_to(_OUTPUT)

    def forget_neighbours(self, *, before: bool, after: bool) -> None:
        """Drop the time in which other dimensions of the same task worked, before or after this one."""
        self._turn_to(self._doing)
        if before:
            self._spent[_INPUT] = 0.0
        if after:
            self._spent[_OUTPUT] = 0.0

    def _turn_to(self, doing: int) -> int:
        now, before = time.perf_counter(), self._doing
        self._spent[before] += now - self._since
        self._since, self._doing = now, doing
        return before


class Doing:
    """Time that a task does not spend on its own."""

    def __init__(self, stopwatch: Stopwatch, doing: int) -> None:
        self._stopwatch = stopwatch
        self._doing = doing

    def __enter__(self) -> None:
        self._before = self._stopwatch._turn_to(self._doing)

    def __exit__(self, *_: object) -> None:
        self._stopwatch._turn_to(self._before)
