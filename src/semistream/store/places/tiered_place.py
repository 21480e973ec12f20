"""A place far away, of which blocks that were read are kept on the local disk."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from threading import Lock

import numpy as np

from semistream.core.arrays import BoolArray, Int64Array, UInt8Array
from semistream.store.places.blocks import are_among, blocks_of, parted_at_blocks, spans_of_blocks
from semistream.store.places.disk_tier import DiskTier
from semistream.store.places.place import MAX_SPAN_BYTES, Copies, ObjectStatus, Place
from semistream.store.places.tier_file import BLOCK_BYTES, PRESENT, TierFile
from semistream.store.places.wrapping_place import WrappingPlace

_PAUSE_SECONDS = 60.0
"""So long nothing is kept after the tier has failed, as on a full disk."""


_UNIT = 2
"""So many neighbouring blocks come together while there is room for them."""
_MAX_WITH_NEIGHBOURS = (16 << 20) // BLOCK_BYTES
"""More blocks than that come without their neighbours: in a first micro-batch somebody waits for all of them."""
_KEPT_BYTES = MAX_SPAN_BYTES
"""So many bytes are gathered before they are kept together, because only one process can do that at a time."""
_ADMITTED_SHARE = 1 / 16
"""A block takes as many bytes as some pages, so that more would cost more than a tier saves that is far too small."""
_TASKS = 8
"""So many tasks of an executor may each bring blocks nearer and then read them, without pushing out each other's."""


class TieredPlace(WrappingPlace):
    """Reads stretches from a tier where it has their blocks, and fetches whole blocks where it does not.

    Objects that are read in stretches must never change under their name; what may differ between contents that have
    had the same name, the tag or the time, is part of what names a copy. A copy may be damaged, or go while it is read:
    whoever reads must check what came, and `distrust` what is wrong. Nothing fails because the tier does.
    """

    def __init__(self, inside: Place, tier: DiskTier) -> None:
        super().__init__(inside)
        self._tier = tier
        self.transit_bytes += _KEPT_BYTES
        self._known: dict[str, ObjectStatus] = {}
        self._expected: dict[str, Int64Array] = {}
        """By object the blocks that were fetched before they were read, ascending: they are no hits."""
        self._random = np.random.default_rng()
        self._counting = Lock()
        self._paused_until = self._unread_until = 0.0

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
        file = self._file(name) if time.monotonic() >= self._unread_until else None
        if file is None:
            self.inside.read_ranges(name, extents, memory)
            return
        is_near = self._read_near(file, extents, memory)
        hits = int((is_near & ~self._were_expected(name, extents)).sum())
        self._count(hits=hits, misses=len(extents) - hits)
        far = extents[~is_near]
        if not len(far):
            return
        blocks = blocks_of(far)
        admitted = self._admitted(blocks)
        if len(admitted) < len(blocks):
            is_kept = are_among(far, admitted)
            if not is_kept.all():
                self.inside.read_ranges(name, far[~is_kept], memory)
            far = far[is_kept]
        if len(far):
            self._fetch(name, file, blocks_of(far), far, memory)

    def expect(self, name: str, extents: Int64Array) -> None:
        """Fetch all blocks of stretches that are not there, side by side."""
        file = self._file(name)
        if file is None or self._is_paused:
            return
        blocks = blocks_of(extents)
        blocks = blocks[blocks < file.block_count]
        is_near = self._states(file)[blocks] == PRESENT
        try:
            # What comes now must not push out what is there already and will be read, too.
            file.count_use(blocks[is_near])
        except OSError as error:
            self._failed(error)
        # More than that would push itself out before it is read.
        needed = self._admitted(blocks[~is_near])[: self._tier.capacity // 2]
        self._expected[name] = needed
        if len(needed):
            self._fetch(name, file, needed, np.empty((0, 3), dtype=np.int64), np.empty(0, dtype=np.uint8))

    def near(self, name: str, extents: Int64Array) -> BoolArray:
        """Say which stretches have all their blocks in the tier."""
        file = self._file(name) if time.monotonic() >= self._unread_until else None
        if file is None:
            return self.inside.near(name, extents)
        is_near = self._are_near(file, extents)
        hits = int((is_near & ~self._were_expected(name, extents)).sum())
        self._count(hits=hits, misses=len(extents) - hits)
        return is_near

    def copies(self, name: str) -> Copies | None:
        """Return the file of the blocks."""
        return self._file(name)

    def read_past_copies(self, name: str, extents: Int64Array, memory: UInt8Array) -> None:
        """Read from the place."""
        self.inside.read_past_copies(name, extents, memory)

    def _admitted(self, blocks: Int64Array) -> Int64Array:
        """Return which of some blocks shall be kept: all while there is room, then a few, taken by lot.

        A tier without room keeps what it has longer than each block that comes by. What is asked for often is taken
        sooner or later, and stays; the others would cost a whole block each time, and push out blocks that are as good.
        """
        try:
            room = self._tier.room
        except OSError as error:
            self._failed(error)
            return blocks[:0]
        if len(blocks) <= room:
            return blocks
        is_admitted = self._random.random(len(blocks)) < _ADMITTED_SHARE
        is_admitted[:room] = True
        return blocks[is_admitted]

    @property
    def max_expected(self) -> int:
        """A part of the tier, since several tasks may do that at a time."""
        return max(1, self._tier.capacity // _TASKS)

    def distrust(self, name: str, extents: Int64Array) -> bool:
        """Throw away the blocks of stretches."""
        file = self._file(name)
        try:
            if file is not None:
                self._tier.drop(file, blocks_of(extents))
        except OSError as error:
            # They are still there, as on a disk that has become read-only: nothing of it can be used.
            self._failed(error)
            self._unread_until = self._paused_until
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
        except OSError as error:
            self._failed(error)
            is_near[:] = False
        # What went meanwhile may have been read as zeros.
        return is_near & self._are_near(file, extents)

    def _were_expected(self, name: str, extents: Int64Array) -> BoolArray:
        """Say which stretches had to be fetched when they were expected; only once, since they are there now."""
        expected = self._expected.get(name)
        if expected is None or not len(expected):
            return np.zeros(len(extents), dtype=np.bool_)
        first, last = extents[:, 0] // BLOCK_BYTES, (extents[:, 0] + extents[:, 1] - 1) // BLOCK_BYTES
        found: BoolArray = np.searchsorted(expected, last, side="right") > np.searchsorted(expected, first)
        self._expected[name] = np.setdiff1d(expected, blocks_of(extents[found]), assume_unique=True)
        return found

    def _states(self, file: TierFile) -> UInt8Array:
        try:
            return file.states()
        except OSError as error:
            self._failed(error)
            return np.zeros(file.block_count, dtype=np.uint8)

    def _are_near(self, file: TierFile, extents: Int64Array) -> BoolArray:
        absent = np.concatenate(([0], np.cumsum(self._states(file) != PRESENT)))
        first, last = extents[:, 0] // BLOCK_BYTES, (extents[:, 0] + extents[:, 1] - 1) // BLOCK_BYTES
        inside = last < file.block_count
        last = np.minimum(last, file.block_count - 1)
        near: BoolArray = inside & (absent[last + 1] == absent[np.minimum(first, last)])
        return near

    def _fetch(self, name: str, file: TierFile, needed: Int64Array, extents: Int64Array, memory: UInt8Array) -> None:
        """Fetch blocks, near ones and what is between them by one request, keep them, and fill stretches from them."""
        wanted = needed
        if _UNIT * len(needed) <= min(self._tier.room, _MAX_WITH_NEIGHBOURS):
            # There is room for their neighbours, so that the next ones need fewer requests.
            units = np.unique(needed // _UNIT)
            wanted = np.repeat(units * _UNIT, _UNIT) + np.tile(np.arange(_UNIT), len(units))
            wanted = wanted[wanted < file.block_count]
        firsts, lasts = spans_of_blocks(wanted, self.inside.gap_bytes // BLOCK_BYTES)
        starts, ends = firsts * BLOCK_BYTES, np.minimum((lasts + 1) * BLOCK_BYTES, file.size_bytes)
        pieces = parted_at_blocks(extents)
        gathered = _Gathered(lambda spans: self._keep(file, needed, spans))

        def take(number: int, contents: Sequence[UInt8Array]) -> None:
            for span, content in enumerate(contents, number):
                begin, end = np.searchsorted(pieces[:, 0], (starts[span], ends[span]))
                for offset, length, position in pieces[begin:end].tolist():
                    at = offset - int(starts[span])
                    memory[position : position + length] = content[at : at + length]
            gathered.add(firsts[number : number + len(contents)].tolist(), contents)

        self.inside.bring_spans(name, starts, ends, take)
        gathered.end()

    def _keep(self, file: TierFile, needed: Int64Array, spans: Sequence[tuple[int, UInt8Array]]) -> None:
        if self._is_paused or not spans:
            return
        blocks: list[int] = []
        parts: list[UInt8Array] = []
        for first, content in sorted(spans, key=itemgetter(0)):
            for at in range(0, len(content), BLOCK_BYTES):
                blocks.append(first + at // BLOCK_BYTES)
                parts.append(content[at : at + BLOCK_BYTES])
        numbers = np.array(blocks, dtype=np.int64)
        asked: BoolArray = np.isin(numbers, needed, assume_unique=True)
        try:
            self._count(blocks=self._tier.keep(file, numbers, parts, asked))
            self.traffic.tier_bytes = self._tier.used_bytes()
        except OSError as error:
            self._failed(error)

    def _file(self, name: str) -> TierFile | None:
        known = self._known.get(name) or self.status(name)
        if known is None or not known.size_bytes:
            return None
        try:
            file = self._tier.file(_identity(self.shown(name), known), known.size_bytes)
            if not self.traffic.tier_bytes:
                self.traffic.tier_bytes = self._tier.used_bytes()
            return file
        except OSError as error:
            self._failed(error)
            return None

    def _note(self, found: dict[str, ObjectStatus]) -> None:
        self._known.update(found)

    @property
    def _is_paused(self) -> bool:
        return time.monotonic() < self._paused_until

    def _failed(self, error: OSError) -> None:
        with self._counting:
            if not self._is_paused:
                self.traffic.tier_failures += 1
                logging.getLogger("semistream").warning(
                    "Copies of %s cannot be kept in %s (%s): free the disk or change the folder; until then it is read "
                    "from the store.",
                    self.shown(),
                    self._tier.folder,
                    error.strerror or error,
                )
            self._paused_until = time.monotonic() + _PAUSE_SECONDS

    def _count(self, hits: int = 0, misses: int = 0, blocks: int = 0) -> None:
        with self._counting:
            self.traffic.tier_hits += hits
            self.traffic.tier_misses += misses
            self.traffic.tier_blocks += blocks


class _Gathered:
    """Spans that came, each with its first block, until they are worth that all other processes wait.

    While some are being kept, those who bring more wait, so that there are never many.
    """

    def __init__(self, keep: Callable[[list[tuple[int, UInt8Array]]], None]) -> None:
        self._keep = keep
        self._adding = Lock()
        self._spans: list[tuple[int, UInt8Array]] = []
        self._size_bytes = 0

    def add(self, firsts: Sequence[int], contents: Sequence[UInt8Array]) -> None:
        """Add spans, and keep all if there are enough."""
        with self._adding:
            self._spans.extend(zip(firsts, contents, strict=True))
            self._size_bytes += sum(len(content) for content in contents)
            if self._size_bytes >= _KEPT_BYTES:
                self._keep_all()

    def end(self) -> None:
        """Keep all that are left."""
        with self._adding:
            self._keep_all()

    def _keep_all(self) -> None:
        spans, self._spans, self._size_bytes = self._spans, [], 0
        self._keep(spans)


def _identity(shown: str, status: ObjectStatus) -> str:
    return f"{shown} {status.size_bytes} {status.tag or status.modified}"
