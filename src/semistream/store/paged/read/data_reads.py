"""Brings stretches of the data files of a version into memory, as their place allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from semistream.core.arrays import Int64Array, UInt8Array


class DataReads(ABC):
    """The data files of a version, open for reading; may be called from several threads."""

    transit_bytes = 0
    """The memory that a read takes besides what it fills."""
    serves_loops = False
    """Whether compiled loops may read from descriptors that it lends, any file with any other."""

    @abstractmethod
    def fetch(self, extents: Int64Array, memory: UInt8Array) -> None:
        """Read extents, each (address, length, position in `memory`); bytes behind the end of a file may be missing."""

    def begin(self, extents: Int64Array, memory: UInt8Array) -> Callable[[], bool] | None:  # noqa: ARG002
        """Begin to do what `fetch` does; return what waits for its end and says whether all has come.

        None if only `fetch` can do it.
        """
        return None

    def expect(self, extents: Int64Array) -> None:  # noqa: B027
        """Be told what will be read soon, as `fetch` is; may bring it nearer."""

    def distrust(self, extents: Int64Array) -> bool:  # noqa: ARG002
        """Throw away copies of extents that were found wrong; False if what was read was not a copy."""
        return False

    @abstractmethod
    def close(self) -> None:
        """Free what it holds; reads that have begun go on to their end."""
