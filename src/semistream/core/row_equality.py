"""Compares rows value by value, whatever their types: nulls equal nulls, and numbers are compared by their bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semistream.core.arrays import BoolArray, Int64Array

_BITS: dict[pa.DataType, pa.DataType] = {
    pa.float16(): pa.int16(),
    pa.float32(): pa.int32(),
    pa.float64(): pa.int64(),
}


def equal_rows(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> BoolArray:
    """Say for each row whether all its columns have the same values on both sides, which have the same types."""
    same = np.ones(len(left[0]) if left else 0, dtype=np.bool_)
    for ours, theirs in zip(left, right, strict=True):
        same &= equal_values(ours, theirs)
    return same


def equal_values(left: pa.Array, right: pa.Array) -> BoolArray:
    """Say for each place whether two columns of one type have the same value there."""
    nulls, other_nulls = _bools(left.is_null()), _bools(right.is_null())
    same: BoolArray = nulls == other_nulls
    valid = same & ~nulls
    if not valid.any():
        return same
    if valid.all():
        return _equal_valid(left, right)
    chosen = pa.array(valid)
    same[valid] = _equal_valid(left.filter(chosen), right.filter(chosen))
    return same


def _equal_valid(left: pa.Array, right: pa.Array) -> BoolArray:
    types, kind = pa.types, left.type
    if isinstance(kind, pa.BaseExtensionType):
        return equal_values(left.storage, right.storage)
    if kind in _BITS:
        return _bools(pc.equal(left.view(_BITS[kind]), right.view(_BITS[kind])))
    if types.is_struct(kind):
        fields = range(kind.num_fields)
        same = equal_rows([left.field(at) for at in fields], [right.field(at) for at in fields])
        return same if kind.num_fields else np.ones(len(left), dtype=np.bool_)
    if types.is_fixed_size_list(kind):
        sizes = np.full(len(left), kind.list_size)
        return _all_of_each(equal_values(left.flatten(), right.flatten()), sizes)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        return _equal_lists(left, right)
    try:
        return _bools(pc.equal(left, right))
    except pa.ArrowNotImplementedError:  # rare types, such as intervals of months
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.fromiter((ours == theirs for ours, theirs in pairs), dtype=np.bool_, count=len(left))


def _equal_lists(left: pa.Array, right: pa.Array) -> BoolArray:
    sizes = np.diff(left.offsets.to_numpy())
    same: BoolArray = sizes == np.diff(right.offsets.to_numpy())
    if not same.all():
        chosen = pa.array(same)
        left, right, sizes = left.filter(chosen), right.filter(chosen), sizes[same]
    inside = equal_rows(_elements(left), _elements(right))
    same[same] = _all_of_each(inside, sizes)
    return same


def _elements(lists: pa.Array) -> list[pa.Array]:
    """Return what lists or maps hold, in one piece from the first to the last."""
    columns = [lists.keys, lists.items] if pa.types.is_map(lists.type) else [lists.values]
    if not len(lists):
        return [column.slice(0, 0) for column in columns]
    offsets = lists.offsets
    first, end = offsets[0].as_py(), offsets[-1].as_py()
    return [column.slice(first, end - first) for column in columns]


def _all_of_each(inside: BoolArray, sizes: Int64Array) -> BoolArray:
    """Say for each group of values, which follow one another, whether all are true."""
    ends = np.cumsum(sizes)
    wrong = np.concatenate([[0], np.cumsum(~inside)])
    clean: BoolArray = wrong[ends] == wrong[ends - sizes]
    return clean


def _bools(array: Any) -> BoolArray:
    flags: BoolArray = array.to_numpy(zero_copy_only=False)
    return flags
