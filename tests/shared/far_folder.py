"""A folder that lends no descriptors, as if it were far away, and counts what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from semistream.core.arrays import Int64Array, UInt8Array
from semistream.store.places.disk_tier import DiskTier
from semistream.store.places.local_folder import LocalFolder
from semistream.store.places.place import Promises
from semistream.store.places.tiered_place import TieredPlace


class FarFolder(LocalFolder):
    """Objects are files, but only stretches of them are read."""

    promises = Promises(locks_writers=True, lends_descriptors=False, lists_cheaply=True)
    gap = 70_000

    @property
    def gap_bytes(self) -> int:
        """As if a request took this long."""
        return self.gap

    def read_ranges(self, name: str, extents: Int64Array, memory: UInt8Array) -> None:
        """Read stretches one by one."""
        content = self._content(name)
        for offset, length, position in extents.tolist():
            memory[position : position + length] = content[offset : offset + length]
        self.traffic.remote_requests += len(extents)
        self.traffic.remote_bytes += int(extents[:, 1].sum())

    def bring_spans(
        self, name: str, starts: Int64Array, ends: Int64Array, take: Callable[[int, Sequence[UInt8Array]], None]
    ) -> None:
        """Hand all stretches over, two at a time."""
        content = self._content(name)
        spans = [content[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        for number in range(0, len(spans), 2):
            take(number, spans[number : number + 2])
        self.traffic.remote_requests += len(spans)
        self.traffic.remote_bytes += sum(len(span) for span in spans)

    def _content(self, name: str) -> UInt8Array:
        return np.memmap(self.folder / name, dtype=np.uint8, mode="r")


def tiered_folder(folder: Path, budget_bytes: int) -> TieredPlace:
    """Return a far folder with a tier beside it."""
    return TieredPlace(FarFolder(folder / "far"), DiskTier(folder / "tier" / str(budget_bytes), budget_bytes))


def read_stretches(place: TieredPlace, name: str, offsets: Int64Array, lengths: Int64Array) -> UInt8Array:
    """Return the bytes of stretches, one after the other."""
    ends = np.cumsum(lengths)
    memory = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
    place.read_ranges(name, np.stack([offsets, lengths, ends - lengths], axis=1), memory)
    return memory


def trusted_stretches(
    place: TieredPlace, name: str, offsets: Int64Array, lengths: Int64Array, expected: UInt8Array
) -> UInt8Array:
    """Read as whoever checks what comes: what is wrong is distrusted and read again."""
    for _ in range(3):
        found = read_stretches(place, name, offsets, lengths)
        if (found == expected).all():
            break
        assert place.distrust(name, np.stack([offsets, lengths, lengths], axis=1))
    return found
