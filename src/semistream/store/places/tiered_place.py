"""A place far away, of which blocks that were read are kept on the local disk."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from threading import Lock

import numpy as np

from semistream.core.arrays import BoolArray, Int64Array, UInt8Array
from semistream.store.places.disk_tier import DiskTier
from semistream.store.places.place import MAX_SPAN_BYTES, ObjectStatus, Place
from semistream.store.places.tier_file import BLOCK_BYTES, PRESENT, TierFile
from semistream.store.places.wrapping_place import WrappingPlace

_PAUSE_SECONDS = 60.0
"""So long nothing is kept after the tier has failed, as on a full disk."""


class TieredPlace(WrappingPlace):
    """Reads stretches from a tier where it has their blocks, and fetches whole blocks where it does not.

    Objects that are read in stretches must never change under their name; what may differ between contents that have
    had the same name, the tag or the time, is part of what names a copy. A copy may be damaged, or go while it is read:
    whoever reads must check what came, and `distrust` what is wrong. Nothing fails because the tier does.
    """

    def __init__(self, inside: Place, tier: DiskTier) -> None:
        super().__init__(inside)
        self._tier = tier
        self._known: dict[str, ObjectStatus] = {}
        self._counting = Lock()
        self._paused_until = 0.0

    def status(self, name: str) -> ObjectStatus | None:
        """Return what is known of an object, and remember it."""
        status = self.inside.status(name)
        self._note({name: status} if status is not None else {})
        return status

    def statuses(self, names: Iterable[str]) -> dict[str, ObjectStatus]:
        """Return what is known of objects, and remember it."""
        found = self.inside.statuses(names)
        self._note(found)
        return found

    def read_ranges(self, name: str, extents: Int64Array, memory: UInt8Array) -> None:
        """Read stretches from the tier, and those it lacks from the place, by whole blocks that are kept."""
        file = self._file(name)
        if file is None:
            self.inside.read_ranges(name, extents, memory)
            return
        is_near = self._read_near(file, extents, memory)
        self._count(hits=int(is_near.sum()), misses=int((~is_near).sum()))
        far = extents[~is_near]
        if len(far):
            self._fetch(name, file, blocks_of(far), far, memory)

    def expect(self, name: str, extents: Int64Array) -> None:
        """Fetch all blocks of stretches that are not there, side by side."""
        file = self._file(name)
        if file is None or self._is_paused:
            return
        missing = ~self._are_near(file, extents)
        # They will count as hits when they are read.
        self._count(hits=-int(missing.sum()), misses=int(missing.sum()))
        needed = blocks_of(extents[missing])
        # More than half of the tier would push itself out before it is read.
        needed = needed[: self._tier.capacity // 2]
        if len(needed):
            self._fetch(name, file, needed, np.empty((0, 3), dtype=np.int64), np.empty(0, dtype=np.uint8))

    def distrust(self, name: str, extents: Int64Array) -> bool:
        """Throw away the blocks of stretches."""
        file = self._file(name)
        if file is None:
            return False
        try:
            self._tier.drop(file, blocks_of(extents))
        except OSError:
            self._failed()
        return True

    def _read_near(self, file: TierFile, extents: Int64Array, memory: UInt8Array) -> BoolArray:
        """Read the stretches whose blocks are all there, and say which these are."""
        is_near = self._are_near(file, extents)
        if not is_near.any():
            return is_near
        near = extents[is_near]
        try:
            is_near[is_near] = file.read_all(near, memory)
            file.count_use(blocks_of(near))
        except OSError:
            self._failed()
            is_near[:] = False
        # What went meanwhile may have been read as zeros.
        return is_near & self._are_near(file, extents)

    def _are_near(self, file: TierFile, extents: Int64Array) -> BoolArray:
        try:
            states = file.states()
        except OSError:
            self._failed()
            return np.zeros(len(extents), dtype=np.bool_)
        absent = np.concatenate(([0], np.cumsum(states != PRESENT)))
        first, last = extents[:, 0] // BLOCK_BYTES, (extents[:, 0] + extents[:, 1] - 1) // BLOCK_BYTES
        inside = last < file.block_count
        last = np.minimum(last, file.block_count - 1)
        near: BoolArray = inside & (absent[last + 1] == absent[np.minimum(first, last)])
        return near

    def _fetch(self, name: str, file: TierFile, needed: Int64Array, extents: Int64Array, memory: UInt8Array) -> None:
        """Fetch blocks, near ones and what is between them by one request, keep them, and fill stretches from them."""
        firsts, lasts = spans_of_blocks(needed, self.inside.gap_bytes // BLOCK_BYTES)
        starts, ends = firsts * BLOCK_BYTES, np.minimum((lasts + 1) * BLOCK_BYTES, file.size_bytes)
        pieces = _parted(extents)

        def take(number: int, contents: Sequence[UInt8Array]) -> None:
            for span, content in enumerate(contents, number):
                begin, end = np.searchsorted(pieces[:, 0], (starts[span], ends[span]))
                for offset, length, position in pieces[begin:end].tolist():
                    at = offset - int(starts[span])
                    memory[position : position + length] = content[at : at + length]
            self._keep(file, needed, firsts[number : number + len(contents)], contents)

        self.inside.bring_spans(name, starts, ends, take)

    def _keep(self, file: TierFile, needed: Int64Array, firsts: Int64Array, contents: Sequence[UInt8Array]) -> None:
        if self._is_paused:
            return
        blocks: list[int] = []
        parts: list[UInt8Array] = []
        for first, content in zip(firsts.tolist(), contents, strict=True):
            for at in range(0, len(content), BLOCK_BYTES):
                blocks.append(first + at // BLOCK_BYTES)
                parts.append(content[at : at + BLOCK_BYTES])
        numbers = np.array(blocks, dtype=np.int64)
        asked: BoolArray = np.isin(numbers, needed, assume_unique=True)
        try:
            kept = self._tier.keep(file, numbers, parts, asked)
        except OSError:
            self._failed()
            return
        self._count(blocks=kept)
        self.traffic.tier_bytes = self._tier.used_bytes()

    def _file(self, name: str) -> TierFile | None:
        known = self._known.get(name) or self.status(name)
        if known is None or not known.size_bytes:
            return None
        try:
            file = self._tier.file(_identity(self.shown(name), known), known.size_bytes)
            if not self.traffic.tier_bytes:
                self.traffic.tier_bytes = self._tier.used_bytes()
            return file
        except OSError:
            self._failed()
            return None

    def _note(self, found: dict[str, ObjectStatus]) -> None:
        self._known.update(found)

    @property
    def _is_paused(self) -> bool:
        return time.monotonic() < self._paused_until

    def _failed(self) -> None:
        with self._counting:
            self.traffic.tier_failures += not self._is_paused
            self._paused_until = time.monotonic() + _PAUSE_SECONDS

    def _count(self, hits: int = 0, misses: int = 0, blocks: int = 0) -> None:
        with self._counting:
            self.traffic.tier_hits += hits
            self.traffic.tier_misses += misses
            self.traffic.tier_blocks += blocks


def blocks_of(extents: Int64Array) -> Int64Array:
    """Return the blocks that stretches touch, ascending."""
    first, last = extents[:, 0] // BLOCK_BYTES, (extents[:, 0] + extents[:, 1] - 1) // BLOCK_BYTES
    counts = last - first + 1
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    found: Int64Array = np.unique(np.repeat(first, counts) + within)
    return found


def spans_of_blocks(blocks: Int64Array, gap: int) -> tuple[Int64Array, Int64Array]:
    """Join ascending blocks that are at most a gap apart to spans that one request may bring: first and last blocks."""
    max_blocks = MAX_SPAN_BYTES // BLOCK_BYTES
    firsts, lasts = [], []
    first = last = -1
    for block in blocks.tolist():
        if first >= 0 and block - last - 1 <= gap and block - first < max_blocks:
            last = block
            continue
        if first >= 0:
            firsts.append(first)
            lasts.append(last)
        first = last = block
    if first >= 0:
        firsts.append(first)
        lasts.append(last)
    return np.array(firsts, dtype=np.int64), np.array(lasts, dtype=np.int64)


def _parted(extents: Int64Array) -> Int64Array:
    """Part stretches at the bounds of blocks, so that each piece comes with one block, and sort the pieces."""
    pieces = [
        (at, min(offset + length, (at // BLOCK_BYTES + 1) * BLOCK_BYTES) - at, position + at - offset)
        for offset, length, position in extents.tolist()
        for at in (offset, *range((offset // BLOCK_BYTES + 1) * BLOCK_BYTES, offset + length, BLOCK_BYTES))
    ]
    return np.array(sorted(pieces), dtype=np.int64).reshape(-1, 3)


def _identity(shown: str, status: ObjectStatus) -> str:
    return f"{shown} {status.size_bytes} {status.tag or status.modified}"
