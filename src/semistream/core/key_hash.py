"""The 64-bit hash of key values; part of the file format, so it must never change (docs/page_format.md)."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int64Array, UInt8Array, UInt64Array
from semistream.core.compile import kernel

_FIRST = np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xBF58476D1CE4E5B9)
_THIRD = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S8 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(8)


@kernel
def _mixed(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> _S30)) * _SECOND
    value = (value ^ (value >> _S27)) * _THIRD
    return value ^ (value >> _S31)


@kernel
def hash_integers(hashes: UInt64Array, values: Int64Array) -> None:
    """Mix each value into the running hash of its row."""
    for row in range(values.shape[0]):
        hashes[row] = _mixed((hashes[row] + _FIRST) ^ np.uint64(values[row]))


@kernel
def hash_bytes(hashes: UInt64Array, offsets: Int64Array, data: UInt8Array) -> None:
    """Mix each byte string, eight bytes at a time and then its length, into the running hash of its row."""
    for row in range(hashes.shape[0]):
        start, end = offsets[row], offsets[row + 1]
        state = hashes[row] + _FIRST
        position = start
        while position < end:
            word = np.uint64(0)
            last = min(position + 8, end)
            for index in range(last - 1, position - 1, -1):
                word = (word << _S8) | np.uint64(data[index])
            state = _mixed(state ^ word)
            position += 8
        hashes[row] = _mixed(state ^ np.uint64(end - start))


@kernel
def equal_bytes(
    left_offsets: Int64Array, left: UInt8Array, right_offsets: Int64Array, right: UInt8Array, equal: UInt8Array
) -> None:
    """Clear `equal` where the byte strings of a row differ."""
    for row in range(equal.shape[0]):
        size = left_offsets[row + 1] - left_offsets[row]
        if size != right_offsets[row + 1] - right_offsets[row]:
            equal[row] = 0
            continue
        for index in range(size):
            if left[left_offsets[row] + index] != right[right_offsets[row] + index]:
                equal[row] = 0
                break
