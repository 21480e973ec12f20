"""A tier on the local disk: copies of blocks of objects that never change, for all processes of a machine that use it.

The folder holds a lock and a pair of files for each object (`tier_file.py`). It may take so many bytes, whoever writes,
because blocks are counted before they are written, from the maps themselves: there is no counter that could be wrong.
Everything here may fail without harm: whoever cannot use the tier reads what it wants from where it comes from.
"""

from __future__ import annotations

import errno
import fcntl
import math
import os
import stat
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock

import numpy as np

from semistream.core.arrays import BoolArray, Int64Array, UInt8Array
from semistream.store.places.tier_file import (
    ABSENT,
    BLOCK_BYTES,
    IN_DOUBT,
    MAX_USE,
    PRESENT,
    TierFile,
    names_of_files,
    remove_files,
    runs_of,
)

MIN_TIER_BYTES = 16_000_000
_LOCK_NAME = "lock"
_LOCK_SECONDS, _LOCK_PAUSE_SECONDS = 2.0, 0.002
_OVERHEAD_BYTES = 128
"""What the file system needs to know where a block is, generously."""
_EVICTED_SHARE = 64
_TOUCH_SECONDS, _UNUSED_SECONDS = 10.0, 60.0
"""Whoever uses an object notes that so often; blocks of one that was not used for so long go before all others."""
_GOLDEN = (math.sqrt(5) - 1) / 2
"""Multiples of it, without their whole parts, spread evenly, wherever one stops."""


class DiskTier:
    """A folder with copies, as this process sees it; may be used from several threads. Any call may raise OSError."""

    def __init__(self, folder: Path, budget_bytes: int) -> None:
        self.folder = folder
        self.budget_bytes = budget_bytes
        self._files: dict[str, TierFile] = {}
        self._by_identity: dict[str, TierFile] = {}
        self._threads = Lock()
        self._lock_file = -1
        self._hands: dict[str, int] = {}
        self._turn = 0.0
        self._room = -1
        self._touched: dict[str, float] = {}

    @property
    def capacity(self) -> int:
        """How many blocks there may be, beside the maps of all objects that are known."""
        maps = sum(file.map_bytes for file in list(self._files.values()))
        return max(0, self.budget_bytes - maps) // (BLOCK_BYTES + _OVERHEAD_BYTES)

    def file(self, identity: str, size_bytes: int) -> TierFile:
        """Return the copies of an object."""
        known = self._by_identity.get(identity)
        if known is None or not known.is_whole:
            with self._alone():
                known = TierFile.made(self.folder, identity, size_bytes)
                if not self._room:
                    # A file that never gets a block takes room all the same.
                    others = self._all_files()
                    self._remove_empty(n for n, file in others.items() if n != known.name and not file.states().any())
                self._files[known.name] = self._by_identity[identity] = known
        now = time.monotonic()
        if now - self._touched.get(known.name, -_TOUCH_SECONDS) >= _TOUCH_SECONDS:
            self._touched[known.name] = now
            known.touch()
        return known

    @property
    def room(self) -> int:
        """For how many more blocks there was room when this process last looked, without those that are in use.

        0 if it is nearly full, because what is freed in advance for a few blocks is no room for many.
        """
        if self._room < 0:
            with self._alone():
                self._look(self._all_files())
        return self._room

    def keep(self, file: TierFile, blocks: Int64Array, contents: Sequence[UInt8Array], asked: BoolArray) -> int:
        """Write ascending blocks that are not there, and return how many were written.

        Those that nobody has asked for are written only while there is room; for the others, old ones go.
        """
        with self._alone():
            others = self._all_files()
            states, room = self._look(others)
            ours = states.get(file.name)
            if ours is None or not file.is_whole:
                return 0  # somebody has removed it
            new = ours[blocks] == ABSENT
            wanted = int(np.count_nonzero(new & asked))
            if wanted > room:
                # Some more than that: to look for blocks that may go takes longer than to write a few.
                room += self._evict(max(wanted - room, self.capacity // _EVICTED_SHARE), others, states)
                self._remove_empty(name for name, each in states.items() if name != file.name and not each.any())
            new &= asked | (np.cumsum(new & ~asked) <= room - wanted)
            chosen = np.flatnonzero(new)[: max(0, room)]
            self._write(file, blocks[chosen], [contents[index] for index in chosen.tolist()])
            fresh = blocks[chosen][asked[chosen]]
            file.count_use(fresh)
            self._room = max(0, self._room - len(chosen))
            return len(chosen)

    def _look(self, others: dict[str, TierFile]) -> tuple[dict[str, UInt8Array], int]:
        """Return the states of all files, and how many more blocks there may be; nobody else writes now."""
        states = {name: self._settled(other) for name, other in others.items()}
        counts = {name: int(np.count_nonzero(each)) for name, each in states.items()}
        room = self.capacity - sum(counts.values())
        of_no_use = sum(count for name, count in counts.items() if others[name].untouched_seconds > _UNUSED_SECONDS)
        self._room = max(0, room + of_no_use - self.capacity // (_EVICTED_SHARE // 2))
        return states, room

    def drop(self, file: TierFile, blocks: Int64Array) -> None:
        """Throw ascending blocks away."""
        with self._alone():
            if file.is_whole:
                file.empty(blocks)

    def used_bytes(self) -> int:
        """Return what the folder takes on the disk; nothing if somebody has just removed it."""
        used = 0
        with suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    used += 512 * entry.stat(follow_symlinks=False).st_blocks
        return used

    def _write(self, file: TierFile, blocks: Int64Array, contents: Sequence[UInt8Array]) -> None:
        file.set_states(blocks, IN_DOUBT)
        try:
            for begin, end in runs_of(blocks):
                content = np.concatenate(contents[begin:end]) if end - begin > 1 else contents[begin]
                file.write_blocks(int(blocks[begin]), content)
        except OSError:
            # What was written counts as in doubt, if not even that can be undone now.
            file.empty(blocks)
            raise
        file.set_states(blocks, PRESENT)

    def _settled(self, file: TierFile) -> UInt8Array:
        """Return the states of a file, after what a writer that died has left is gone; nobody else writes now."""
        states = file.states()
        if (states == IN_DOUBT).any() or states.max(initial=0) > PRESENT:
            file.empty(np.flatnonzero((states != ABSENT) & (states != PRESENT)))
            states = file.states()
        return states

    def _evict(self, count: int, others: dict[str, TierFile], states: dict[str, UInt8Array]) -> int:
        """Make so many blocks absent, if there are so many, and return how many.

        A hand goes round the blocks of each file; one that was used has its count lowered and stays, one that was not
        goes. It does not go in the order of the blocks, and files take turns: whoever reads in that order would find
        that the next blocks have just gone.
        """
        freed = 0
        unused = [name for name in states if others[name].untouched_seconds > _UNUSED_SECONDS]
        for name in [*unused * (MAX_USE + 1), *self._in_turn(states) * (MAX_USE + 1)]:
            file, present = others[name], states[name]
            at = self._hands.get(name, 0)
            order = np.roll(scattered(len(present)), -at)
            round_trip = order[present[order] == PRESENT]
            uses = file.uses()
            found = np.flatnonzero(uses[round_trip] == 0)[: count - freed]
            is_enough = len(found) == count - freed
            passed = round_trip[: found[-1] + 1] if is_enough else round_trip
            gone = np.sort(round_trip[found])
            uses[passed] -= uses[passed] > 0
            file.set_uses(0, uses)
            file.empty(gone)
            present[gone] = ABSENT
            freed += len(gone)
            if is_enough:
                self._hands[name] = (at + int(np.flatnonzero(order == passed[-1])[0]) + 1) % len(present)
                break
        return freed

    def _in_turn(self, states: dict[str, UInt8Array]) -> list[str]:
        """Return the names of all files, each coming first as often as it has blocks."""
        names = sorted(states)
        ends = np.cumsum([np.count_nonzero(states[name]) for name in names])
        self._turn = (self._turn + _GOLDEN) % 1.0
        first = int(np.searchsorted(ends, self._turn * ends[-1], side="right"))
        return [*names[first:], *names[:first]]

    def _all_files(self) -> dict[str, TierFile]:
        """Return all files in the folder, those of other processes too, after what belongs to nothing is gone."""
        names, alone = names_of_files(self.folder)
        for name in alone:
            remove_files(self.folder, name)
        for name in names:
            if name not in self._files or not self._files[name].is_whole:
                try:
                    self._files[name] = TierFile.found(self.folder, name)
                except (OSError, ValueError):
                    remove_files(self.folder, name)
        self._forget(set(self._files) - set(names))
        return {name: self._files[name] for name in names if name in self._files}

    def _remove_empty(self, names: Iterable[str]) -> None:
        """Remove files without blocks, whose maps take room: those of objects that are gone come to that in time."""
        for name in (empty := set(names)):
            remove_files(self.folder, name)
        self._forget(empty)

    def _forget(self, gone: Collection[str]) -> None:
        """Let files go, so that they are closed once no thread reads them."""
        self._files = {name: file for name, file in self._files.items() if name not in gone}
        self._by_identity = {text: file for text, file in self._by_identity.items() if file.name not in gone}
        self._hands = {name: at for name, at in self._hands.items() if name not in gone}

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep all others from changing the folder; OSError if somebody else does for too long."""
        deadline = time.monotonic() + _LOCK_SECONDS
        if not self._threads.acquire(timeout=_LOCK_SECONDS):
            raise OSError(errno.EBUSY, "another thread is at work")
        try:
            lock = self._locked(deadline)
            try:
                yield
            finally:
                fcntl.flock(lock, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    def _locked(self, deadline: float) -> int:
        while True:
            if self._lock_file < 0:
                make_own_folder(self.folder)
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                self._lock_file = os.open(self.folder / _LOCK_NAME, flags, 0o600)
            try:
                fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise OSError(errno.EBUSY, "another process is at work") from None
                time.sleep(_LOCK_PAUSE_SECONDS)
                continue
            if os.fstat(self._lock_file).st_nlink:
                return self._lock_file
            # Somebody has removed the folder: whoever comes next must meet us there.
            os.close(self._lock_file)
            self._lock_file = -1


@lru_cache(maxsize=8)
def scattered(count: int) -> Int64Array:
    """Return all numbers below one, in an order in which neighbours are far apart."""
    step = max(1, round(_GOLDEN * count))
    while math.gcd(step, count) > 1:
        step += 1
    order: Int64Array = np.arange(count, dtype=np.int64) * step % max(1, count)
    return order


def make_own_folder(folder: Path) -> None:
    """Make a folder and the one above it, which only this user can enter; OSError if another user has one there."""
    for each in (folder.parent, folder):
        each.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = each.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise PermissionError(errno.EPERM, "is not a folder of this user alone", str(each))


def tier_folder(budget_bytes: int) -> Path:
    """Return where this process has its tier: in the local folder of Spark's executor, or among temporary files.

    Tiers of different sizes are apart, so that each keeps to its own.
    """
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0].strip()
    return Path(local or tempfile.gettempdir()) / f"semistream-tier-{os.geteuid()}" / str(budget_bytes)


def tier_of_process(budget_bytes: int) -> DiskTier:
    """Return the tier of a size, one for each process."""
    return _tier(tier_folder(budget_bytes), budget_bytes, os.getpid())


@lru_cache(maxsize=16)
def _tier(folder: Path, budget_bytes: int, _process: int) -> DiskTier:
    return DiskTier(folder, budget_bytes)
