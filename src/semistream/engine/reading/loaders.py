"""Threads that read while the join goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread

from semistream.store.contract import PageSet


class Load:
    """A read that a thread does; a queue brings its outcome, because that wakes up the caller at the least cost.

    Who waits for the first of several reads gives them a queue of their own, into which each of them comes when done.
    """

    def __init__(self, read: Callable[[], PageSet], ended: SimpleQueue[Load] | None = None) -> None:
        self._read = read
        self._ended = ended
        self._done: SimpleQueue[PageSet | BaseException] = SimpleQueue()
        self.began = self.ended = 0.0

    def run(self) -> None:
        """Do the read; whatever goes wrong is for who waits for it."""
        self.began = time.perf_counter()
        outcome: PageSet | BaseException
        try:
            outcome = self._read()
        except BaseException as raised:
            outcome = raised
        self.ended = time.perf_counter()
        self._done.put(outcome)
        if self._ended is not None:
            self._ended.put(self)

    def outcome(self) -> PageSet | BaseException:
        """Wait for the pages, or for what was raised instead; may be called once."""
        return self._done.get()

    @property
    def is_timed(self) -> bool:
        """Whether it is known when the read ended."""
        return True


class BegunLoad(Load):
    """A read that the store does by itself, without a thread; who asks for the outcome waits for its rest."""

    _NO_WAIT_SECONDS = 50e-6

    def __init__(self, read: Callable[[], PageSet]) -> None:
        super().__init__(read)
        self._asked = self._begun = time.perf_counter()

    def outcome(self) -> PageSet | BaseException:
        """Wait for the pages, or for what was raised instead; may be called once."""
        self._asked = time.perf_counter()
        self.run()
        self.began = self._begun
        return super().outcome()

    @property
    def is_timed(self) -> bool:
        """Whether it is known when the read ended: only if somebody had to wait for it."""
        return self.ended - self._asked > self._NO_WAIT_SECONDS


class Loaders:
    """So many threads, each of which does one read after the other, in the order in which they were begun.

    Another thread may begin reads while one closes; what is begun afterwards is read at once.
    """

    def __init__(self, threads: int) -> None:
        self._max_threads = threads
        self._threads: list[Thread] = []
        self._loads: SimpleQueue[Load | None] = SimpleQueue()
        self._lock = Lock()
        self._closed = False

    def begin(self, load: Load) -> Load:
        """Let a thread do a read as soon as one is free."""
        with self._lock:
            if not self._closed:
                if len(self._threads) < self._max_threads:
                    thread = Thread(target=_load, args=(self._loads,), name="semistream-ahead", daemon=True)
                    self._threads.append(thread)
                    thread.start()
                self._loads.put(load)
                return load
        load.run()
        return load

    def close(self, max_seconds: float | None = None) -> None:
        """Wait for the reads that were begun, each for so long at most, and end the threads."""
        self._dismiss()
        for thread in self._threads:
            thread.join(max_seconds)

    def _dismiss(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                for _ in self._threads:
                    self._loads.put(None)

    def __del__(self) -> None:
        self._dismiss()


def _load(loads: SimpleQueue[Load | None]) -> None:
    while (load := loads.get()) is not None:
        load.run()
        del load  # it holds the pages
