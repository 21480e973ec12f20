"""Hashes of whole rows, whatever their types: equal rows have equal hashes, and numbers are compared by their bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int64Array, UInt8Array, UInt64Array
from semistream.core.compile import kernel
from semistream.core.key_hash import hash_bytes, hash_integers

_SEEDS = (0x5E315721, 0xA0761D6478BD642F)
"""Two hashes of 64 bits together are taken for the row itself."""
ROW_HASH = np.dtype([("first", np.uint64), ("second", np.uint64)])


def row_hashes(columns: Sequence[pa.Array], count: int) -> np.ndarray[Any, Any]:
    """Return 128 bits for each of `count` rows."""
    hashes = np.empty(count, dtype=ROW_HASH)
    for name, seed in zip(("first", "second"), _SEEDS, strict=True):
        running = np.full(count, seed, dtype=np.uint64)
        for column in columns:
            _mix(running, column)
        hashes[name] = running
    return hashes


def _mix(hashes: UInt64Array, values: pa.Array) -> None:
    """Mix a value of a column into the running hash of each row."""
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        _mix(hashes, values.storage)
        return
    if pa.types.is_dictionary(kind):
        _mix(hashes, values.dictionary_decode())
        return
    valid: BoolArray = values.is_valid().to_numpy(zero_copy_only=False)
    hash_integers(hashes, valid.astype(np.int64))
    if pa.types.is_null(kind):
        return
    if pa.types.is_struct(kind):
        for field in values.flatten():
            _mix(hashes, field)
    elif pa.types.is_fixed_size_list(kind):
        sizes = np.where(valid, kind.list_size, 0)
        _mix_lists(hashes, [values.flatten()], np.append(0, np.cumsum(sizes)))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        _mix_varying_lists(hashes, values, valid)
    elif _is_text(kind):
        _mix_texts(hashes, values, valid)
    else:
        for words in _words(values, valid):
            hash_integers(hashes, words)


def _mix_varying_lists(hashes: UInt64Array, values: pa.Array, valid: BoolArray) -> None:
    kept = values.filter(pa.array(valid)) if not valid.all() else values
    sizes = np.zeros(len(values), dtype=np.int64)
    offsets = kept.offsets.to_numpy().astype(np.int64)
    sizes[valid] = np.diff(offsets)
    columns = [kept.keys, kept.items] if pa.types.is_map(values.type) else [kept.values]
    first, end = int(offsets[0]), int(offsets[-1])
    _mix_lists(hashes, [column.slice(first, end - first) for column in columns], np.append(0, np.cumsum(sizes)))


def _mix_lists(hashes: UInt64Array, columns: Sequence[pa.Array], bounds: Int64Array) -> None:
    inside = np.full(int(bounds[-1]), _SEEDS[0], dtype=np.uint64)
    for column in columns:
        _mix(inside, column)
    _fold(hashes, inside.view(np.int64), bounds)
    hash_integers(hashes, np.diff(bounds))


@kernel
def _fold(hashes: UInt64Array, inside: Int64Array, bounds: Int64Array) -> None:
    for row in range(hashes.shape[0]):
        state = hashes[row]
        for index in range(bounds[row], bounds[row + 1]):
            state = (state ^ np.uint64(inside[index])) * np.uint64(0x9FB21C651E98DF25)
            state ^= state >> np.uint64(32)
        hashes[row] = state


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
    )


def _mix_texts(hashes: UInt64Array, values: pa.Array, valid: BoolArray) -> None:
    kept = values.cast(pa.large_binary()) if not pa.types.is_large_binary(values.type) else values
    offsets = np.frombuffer(kept.buffers()[1], dtype=np.int64)[kept.offset : kept.offset + len(kept) + 1]
    data: UInt8Array = np.frombuffer(kept.buffers()[2] or b"", dtype=np.uint8)
    if valid.all():
        hash_bytes(hashes, offsets, data)
        return
    some = hashes[valid]
    whole = kept.filter(pa.array(valid))
    offsets = np.frombuffer(whole.buffers()[1], dtype=np.int64)[whole.offset : whole.offset + len(whole) + 1]
    hash_bytes(some, offsets, np.frombuffer(whole.buffers()[2] or b"", dtype=np.uint8))
    hashes[valid] = some


def _words(values: pa.Array, valid: BoolArray) -> list[Int64Array]:
    """Return the bits of numbers, times and the like, as words of 64 bits; those of nulls are 0."""
    kind = values.type
    if pa.types.is_boolean(kind):
        bits = values.fill_null(False).to_numpy(zero_copy_only=False)
        return [bits.astype(np.int64)]
    width = kind.bit_width
    if width > 64:
        raw = np.frombuffer(values.buffers()[1], dtype=np.int64).reshape(-1, width // 64)
        chosen = raw[values.offset : values.offset + len(values)]
        return [np.where(valid, chosen[:, word], 0) for word in range(width // 64)]
    raw = np.frombuffer(values.buffers()[1], dtype=f"i{width // 8}")[values.offset : values.offset + len(values)]
    return [np.where(valid, raw, 0).astype(np.int64)]
