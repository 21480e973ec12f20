"""Tells of which heat class a key is: a compact map of the hot keys, in which all others are of the coldest class.

A key code is hashed; the high bits of the hash choose a bucket, and those that follow are a fingerprint that the bucket
holds together with the class. A few cold keys have the fingerprint of a hot one. They are of its class then, and since
rows are put where the map says, every key is found all the same.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semistream.core.arrays import Int64Array, UInt8Array, UInt32Array, UInt64Array
from semistream.core.compile import kernel
from semistream.core.key_hash import hash_integers

MAX_CLASSES = 16
"""With the coldest one: a class takes four bits."""
_CLASS_BITS = 4
_BUCKET_KEYS = 8
"""A bucket has at most so many keys in the mean, and at least half as many."""
_SHORT_ENTRIES_FROM = 64
"""Entries have 16 bits if at least one row in so many is hot: otherwise too many cold rows would be among them."""
_HEAD = struct.Struct("<IBBBB")


@dataclass(frozen=True)
class HeatMap:
    """The fingerprints and classes of hot keys, bucket after bucket."""

    class_count: int
    """With the coldest class, which is the last one."""
    bucket_bits: int
    starts: UInt32Array
    """Where each bucket starts, and at the end the number of entries."""
    entries: NDArray[Any]

    @classmethod
    def of(cls, codes: Int64Array, classes: UInt8Array, class_count: int, row_count: int) -> HeatMap:
        """Return the map of some distinct codes and the class of each; the table has so many rows."""
        bucket_bits = 0
        while len(codes) > _BUCKET_KEYS << bucket_bits:
            bucket_bits += 1
        kind = np.uint16 if len(codes) * _SHORT_ENTRIES_FROM >= row_count else np.uint32
        hashes = _hashes(codes)
        fingerprints = _fingerprints(hashes, bucket_bits, 8 * np.dtype(kind).itemsize - _CLASS_BITS)
        buckets = _buckets(hashes, bucket_bits)
        entries = (fingerprints << np.uint64(_CLASS_BITS)) | classes.astype(np.uint64)
        order = np.lexsort((entries, buckets))
        buckets, entries, fingerprints = buckets[order], entries[order], fingerprints[order]
        # Of hot keys with one fingerprint the hottest counts for all of them.
        is_first = np.ones(len(order), dtype=np.bool_)
        is_first[1:] = (buckets[1:] != buckets[:-1]) | (fingerprints[1:] != fingerprints[:-1])
        bounds = np.arange((1 << bucket_bits) + 1, dtype=np.uint64)
        starts = np.searchsorted(buckets[is_first], bounds, side="left").astype(np.uint32)
        return cls(class_count, bucket_bits, starts, entries[is_first].astype(kind))

    @staticmethod
    def max_keys(size_bytes: int, row_count: int) -> int:
        """Return how many keys a map of a table of so many rows can have within some bytes."""
        short, long = size_bytes // 3, size_bytes // 5
        return short if short * _SHORT_ENTRIES_FROM >= row_count else long

    @property
    def size_bytes(self) -> int:
        """The memory of the map."""
        return int(self.starts.nbytes + self.entries.nbytes)

    def class_of(self, codes: Int64Array) -> UInt8Array:
        """Return the class of each code."""
        classes = np.full(len(codes), self.class_count - 1, dtype=np.uint8)
        if len(self.entries):
            fingerprint_bits = 8 * self.entries.itemsize - _CLASS_BITS
            _look_up(self.starts, self.entries, self.bucket_bits, fingerprint_bits, _hashes(codes), classes)
        return classes

    def is_same_as(self, other: HeatMap) -> bool:
        """Say whether both tell the same class of every code."""
        return (
            (self.class_count, self.bucket_bits) == (other.class_count, other.bucket_bits)
            and self.entries.dtype == other.entries.dtype
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.entries, other.entries)
        )

    def encode(self) -> bytes:
        """Return the map as it is stored: how many entries there are and of what kind, the starts, and the entries."""
        width = self.entries.itemsize
        head = _HEAD.pack(len(self.entries), self.class_count, self.bucket_bits, width, 0)
        return head + self.starts.astype("<u4").tobytes() + self.entries.astype(f"<u{width}").tobytes()

    @classmethod
    def decode(cls, content: memoryview) -> HeatMap:
        """Return the map in `content`, or raise ValueError if it is none."""
        if len(content) < _HEAD.size:
            raise ValueError("it is too short")
        count, class_count, bucket_bits, width, _ = _HEAD.unpack_from(content)
        if not 1 <= class_count <= MAX_CLASSES or bucket_bits > 28 or width not in (2, 4):
            raise ValueError("its head is wrong")
        starts_end = _HEAD.size + 4 * ((1 << bucket_bits) + 1)
        if len(content) != starts_end + width * count:
            raise ValueError(f"it has {len(content)} bytes for {count} keys")
        starts = np.frombuffer(content[_HEAD.size : starts_end], dtype="<u4").astype(np.uint32)
        stored = np.frombuffer(content[starts_end:], dtype=f"<u{width}")
        entries: NDArray[Any] = stored.astype(np.uint16 if width == 2 else np.uint32)
        if starts[0] != 0 or starts[-1] != count or (starts[1:] < starts[:-1]).any():
            raise ValueError("its buckets are not in order")
        if count and int(np.bitwise_and(entries, (1 << _CLASS_BITS) - 1).max()) >= class_count:
            raise ValueError("it names a class that does not exist")
        return cls(class_count, bucket_bits, starts, entries)


def _hashes(codes: Int64Array) -> UInt64Array:
    hashes = np.zeros(len(codes), dtype=np.uint64)
    hash_integers(hashes, np.ascontiguousarray(codes))
    return hashes


def _buckets(hashes: UInt64Array, bucket_bits: int) -> UInt64Array:
    return hashes >> np.uint64(64 - bucket_bits) if bucket_bits else np.zeros_like(hashes)


def _fingerprints(hashes: UInt64Array, bucket_bits: int, fingerprint_bits: int) -> UInt64Array:
    return (hashes << np.uint64(bucket_bits)) >> np.uint64(64 - fingerprint_bits)


@kernel
def _look_up(
    starts: UInt32Array,
    entries: NDArray[Any],
    bucket_bits: int,
    fingerprint_bits: int,
    hashes: UInt64Array,
    classes: UInt8Array,
) -> None:
    left, right = np.uint64(bucket_bits), np.uint64(64 - fingerprint_bits)
    for index in range(hashes.shape[0]):
        bucket = np.int64(hashes[index] >> np.uint64(64 - bucket_bits)) if bucket_bits else np.int64(0)
        fingerprint = np.int64((hashes[index] << left) >> right)
        for place in range(np.int64(starts[bucket]), np.int64(starts[bucket + 1])):
            entry = np.int64(entries[place])
            if entry >> 4 >= fingerprint:
                if entry >> 4 == fingerprint:
                    classes[index] = entry & 15
                break
