"""Finds rows of one key among sorted rows and does with them what the table's rule says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.core.errors import DuplicateKeyError, InvalidSettingError
from semistream.core.keys import KeyCodec
from semistream.store.paged.format.row_layout import RowLayout
from semistream.store.paged.write.packing import codes_of

RULES = ("error", "all", "latest")
_ADVICE = "remove all but one of them, or set on_duplicate to 'latest' or 'all'"


def check_rule(on_duplicate: str) -> None:
    """Raise InvalidSettingError unless this is a rule for duplicates."""
    if on_duplicate not in RULES:
        raise InvalidSettingError(f"on_duplicate is {on_duplicate!r}: choose one of {', '.join(RULES)}.")


class DuplicateFilter:
    """Applies a rule to rows of one key: refuses them with some advice, keeps all, or keeps the latest."""

    def __init__(self, layout: RowLayout, on_duplicate: str, advice: str = _ADVICE) -> None:
        check_rule(on_duplicate)
        self._layout = layout
        self._rule = on_duplicate
        self._advice = advice
        self.kept_duplicates = False
        """Whether rows of one key were let through."""

    def filtered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what the rule leaves of sorted coded rows."""
        for rows in whole_codes(batches):
            yield self._apply(rows)

    def _apply(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        layout = self._layout
        keys = key_numbers(layout.codec, codes_of(rows), layout.key_columns(rows))
        if keys is None:
            return rows
        distinct = int(keys.max()) + 1
        if distinct == len(keys):
            return rows
        if self._rule == "all":
            self.kept_duplicates = True
            return rows
        last = np.empty(distinct, dtype=np.int64)
        last[keys] = np.arange(len(keys))  # of repeated places the last value stays
        if self._rule == "latest":
            return rows.take(pa.array(np.sort(last)))
        row = int(np.flatnonzero(last[keys] != np.arange(len(keys)))[0])
        parts = zip(layout.key, layout.key_columns(rows), strict=True)
        key = ", ".join(f"{name}={column[row]}" for name, column in parts)
        raise DuplicateKeyError(f"The key {key} occurs in several master rows: {self._advice}.")


def whole_codes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield sorted coded rows so that all rows of one code come in the same batch."""
    held: list[pa.RecordBatch] = []
    held_code = 0
    for rows in batches:
        if not rows.num_rows:
            continue
        codes = codes_of(rows)
        if held and int(codes[-1]) == held_code:
            held.append(rows)
            continue
        last = int(np.searchsorted(codes, codes[-1], side="left"))
        complete = rows.slice(0, last)
        if held:
            complete = pa.concat_batches([*held, complete])
        held, held_code = [rows.slice(last)], int(codes[-1])
        if complete.num_rows:
            yield complete
    if held:
        yield pa.concat_batches(held)


def key_numbers(codec: KeyCodec, codes: Int64Array, keys: Sequence[pa.Array]) -> Int64Array | None:
    """Number the distinct keys of sorted rows from 0, or return None if all codes differ."""
    same_code = codes[1:] == codes[:-1]
    if not same_code.any():
        return None
    numbers = np.concatenate(([0], np.cumsum(~same_code)))
    if codec.exact:
        return numbers
    first = np.flatnonzero(same_code)
    here, behind = pa.array(first), pa.array(first + 1)
    same_key = codec.same_key([key.take(here) for key in keys], [key.take(behind) for key in keys])
    for number in np.unique(numbers[first[~same_key]]).tolist():
        # Different keys of one code: rare enough for a loop over such codes.
        group = np.flatnonzero(numbers == number)
        numbers[group] = _numbered(codec, [key.take(pa.array(group)) for key in keys], number, int(numbers.max()) + 1)
    return numbers


def distinct_keys(codec: KeyCodec, codes: Int64Array, keys: Sequence[pa.Array]) -> tuple[Int64Array, list[pa.Array]]:
    """Return the codes and keys of sorted rows, each key once."""
    numbers = key_numbers(codec, codes, keys)
    if numbers is None:
        return codes, list(keys)
    rows = np.sort(np.unique(numbers, return_index=True)[1])
    return codes[rows], [key.take(pa.array(rows)) for key in keys]


def _numbered(codec: KeyCodec, keys: Sequence[pa.Array], number: int, next_number: int) -> Int64Array:
    numbers = np.full(len(keys[0]), -1, dtype=np.int64)
    while (numbers < 0).any():
        one = int(np.flatnonzero(numbers < 0)[0])
        repeated = pa.array(np.full(len(numbers), one))
        numbers[codec.same_key(keys, [key.take(repeated) for key in keys])] = number
        number, next_number = next_number, next_number + 1
    return numbers
