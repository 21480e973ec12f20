"""Direct reads that the system does by itself while the process goes on: its asynchronous reads, without a thread."""

from __future__ import annotations

import ctypes
import errno
import platform
from contextlib import suppress
from threading import RLock

import numpy as np
import numpy.typing as npt

from semistream.core.arrays import Int64Array, UInt8Array

MAX_EXTENTS = 64
"""How many extents one read may have."""
_CALLS = {"x86_64": (206, 207, 208, 209), "aarch64": (0, 1, 4, 2)}
"""The numbers of io_setup, io_destroy, io_getevents and io_submit."""
_REQUEST = np.dtype(
    [
        ("place", "<u8"),
        ("key", "<u4"),
        ("flags", "<u4"),
        ("operation", "<u2"),  # 0 reads
        ("priority", "<i2"),
        ("descriptor", "<u4"),
        ("memory", "<u8"),
        ("length", "<u8"),
        ("offset", "<i8"),
        ("reserved", "<u8"),
        ("more_flags", "<u4"),
        ("event_descriptor", "<u4"),
    ]
)
_EVENT = np.dtype([("place", "<u8"), ("request", "<u8"), ("result", "<i8"), ("more", "<i8")])

_LIBRARY = ctypes.CDLL(None, use_errno=True)


class SystemReads:
    """Begins reads from descriptors that were opened for direct reads.

    Where the system has no such reads, or has no room for more of them, none begins. A thread that reads must wait for
    the interpreter after each read, while the disk has nothing to do; here nobody waits until the bytes are needed. May
    be called from several threads.
    """

    def __init__(self) -> None:
        self._calls = _CALLS.get(platform.machine())
        self._lock = RLock()
        """Taken again where the garbage collection drops a read while it is held."""
        self._idle: list[int] = []
        """Contexts in which no read is under way."""
        self._closed = False

    def begin(self, requests: npt.NDArray[np.void], memory: UInt8Array) -> BegunRead | None:
        """Begin to read into `memory`; the descriptors may be closed afterwards."""
        if self._calls is None or len(requests) > MAX_EXTENTS:
            return None
        context = self._context()
        if context is None:
            return None
        begun = BegunRead(self, context, requests, memory)
        return begun if begun.submit() else None

    def close(self) -> None:
        """Give everything back to the system, what is under way when it has ended."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for context in idle:
            self.destroy(context)

    def give_back(self, context: int) -> None:
        """Let a context be used again."""
        with self._lock:
            if not self._closed:
                self._idle.append(context)
                return
        self.destroy(context)

    def destroy(self, context: int) -> None:
        """Give a context back to the system, after waiting for what is under way in it."""
        self.call(1, ctypes.c_ulong(context))

    def call(self, which: int, *arguments: object) -> int:
        """Make one of the four system calls, again when a signal came in between; returns minus the error's number."""
        assert self._calls is not None
        while True:
            result = int(_LIBRARY.syscall(ctypes.c_long(self._calls[which]), *arguments))
            if result >= 0:
                return result
            if ctypes.get_errno() != errno.EINTR:
                return -ctypes.get_errno()

    def _context(self) -> int | None:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        context = ctypes.c_ulong(0)
        try:
            begun = self.call(0, ctypes.c_long(MAX_EXTENTS), ctypes.byref(context))
        except BaseException:  # of a signal's handler
            if context.value:
                self.destroy(context.value)
            raise
        return context.value if begun >= 0 else None


class BegunRead:
    """Some extents on their way into memory, which is held until none of them is under way."""

    def __init__(self, system: SystemReads, context: int, requests: npt.NDArray[np.void], memory: UInt8Array) -> None:
        self._system = system
        self._context = context
        self._requests = requests
        self._memory = memory
        self._results = np.full(len(requests), -1, dtype=np.int64)
        self._under_way = 0

    def submit(self) -> bool:
        """Begin to read; False if the system has taken none of the extents, and none is under way."""
        places = self._requests.ctypes.data + np.arange(len(self._requests), dtype=np.uint64) * np.uint64(
            _REQUEST.itemsize
        )
        is_begun = False
        try:
            while self._under_way < len(places):
                rest = np.ascontiguousarray(places[self._under_way :])
                begun = self._system.call(
                    3, ctypes.c_ulong(self._context), ctypes.c_long(len(rest)), ctypes.c_void_p(rest.ctypes.data)
                )
                if begun <= 0:
                    break
                self._under_way += begun
            is_begun = self._under_way > 0 or not len(places)
        finally:
            if not is_begun:
                self._end(is_known=False)
        return is_begun

    def wait(self) -> Int64Array:
        """Wait until nothing is under way; return how many bytes each extent has brought, below 0 if it failed."""
        if self._context:
            is_known = False
            try:
                is_known = self._have_all_come()
            finally:
                self._end(is_known=is_known)
        return self._results

    def _have_all_come(self) -> bool:
        """Wait for all; False if the system does not say of all of them that they have ended."""
        while self._under_way:
            events = np.empty(self._under_way, dtype=_EVENT)
            counts = ctypes.c_long(self._under_way)
            ended = self._system.call(
                2, ctypes.c_ulong(self._context), counts, counts, ctypes.c_void_p(events.ctypes.data), None
            )
            if ended < 0:
                return False
            self._results[events["place"][:ended].astype(np.int64)] = events["result"][:ended]
            self._under_way -= ended
        return True

    def _end(self, *, is_known: bool) -> None:
        """Let the context go; where it is not known whether all has ended, as after a signal, wait for it first."""
        context, self._context = self._context, 0
        if is_known:
            self._system.give_back(context)
        else:
            self._system.destroy(context)

    def __del__(self) -> None:
        # The system must not write into memory that others have by then.
        with suppress(Exception):
            self.wait()


def requests_for(
    descriptors: npt.NDArray[np.int32],
    numbers: Int64Array,
    offsets: Int64Array,
    extents: Int64Array,
    memory: UInt8Array,
) -> npt.NDArray[np.void]:
    """Return what the system is to be asked for: a read for each extent, from a file's descriptor and offset."""
    requests = np.zeros(len(extents), dtype=_REQUEST)
    requests["place"] = np.arange(len(extents))
    requests["descriptor"] = descriptors[numbers]
    requests["memory"] = memory.ctypes.data + extents[:, 2]
    requests["length"] = extents[:, 1]
    requests["offset"] = offsets
    return requests
