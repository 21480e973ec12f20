"""The small kernels agree with dictionaries and numpy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core.code_table import CodeTable
from semistream.engine.reading.matching import count_matches, match, run_lengths
from semistream.engine.rows.gather import concatenate, gather, group
from semistream.store.sparse_index import SparseIndex

LOW, HIGH = -(2**63), 2**63 - 1
fixed = settings(max_examples=80, deadline=None, derandomize=True, print_blob=True)
codes = st.one_of(st.integers(-50, 50), st.integers(LOW, HIGH), st.sampled_from([LOW, HIGH]))
next_to_each_other = st.one_of(
    codes, st.integers(HIGH - 3, HIGH), st.integers(LOW, LOW + 3), st.integers(2**60, 2**60 + 3)
)


def array(values: object) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@fixed
@given(st.lists(codes, min_size=1, max_size=60, unique=True), st.data())
def test_a_code_table_is_a_dictionary(keys: list[int], data: st.DataObject) -> None:
    table = CodeTable(len(keys))
    held: dict[int, int] = {}
    for _ in range(6):
        absent = [key for key in keys if key not in held]
        new = data.draw(st.lists(st.sampled_from(absent), unique=True)) if absent else []
        held.update((key, keys.index(key)) for key in new)
        table.insert(array(new), array([held[key] for key in new]))
        gone = data.draw(st.lists(st.sampled_from(list(held)), unique=True)) if held else []
        table.remove(array(gone))
        for key in gone:
            del held[key]
        assert table.find(array(keys)).tolist() == [held.get(key, -1) for key in keys]


def test_a_code_table_finds_codes_that_share_a_home() -> None:
    table = CodeTable(200)
    inverse = pow(0x9E3779B97F4A7C15, -1, 2**64)
    clashing = array(
        [(place * inverse) % 2**64 - (2**64 if (place * inverse) % 2**64 > HIGH else 0) for place in range(200)]
    )
    table.insert(clashing, np.arange(200))
    for first in range(200):
        assert table.find(clashing).tolist() == [-1] * first + list(range(first, 200))
        table.remove(clashing[first : first + 1])
    assert table.size_bytes == CodeTable.bytes_for(200)


def first_rows(page: list[int], wanted: list[int]) -> list[int]:
    return [page.index(code) if code in page else -1 for code in wanted]


def check_match(ranges: list[list[int]], wanted: list[list[int]]) -> None:
    ranges = [sorted(values) for values in ranges]
    page_bounds = np.cumsum([0, *map(len, ranges)])
    bounds = np.cumsum([0, *map(len, wanted)])
    rows, found = match(
        array([code for values in ranges for code in values]),
        array(page_bounds),
        array([code for values in wanted for code in values]),
        array(bounds),
    )
    expected = [
        row + int(start) if row >= 0 else -1
        for values, some, start in zip(ranges, wanted, page_bounds, strict=False)
        for row in first_rows(values, some)
    ]
    assert rows.tolist() == expected
    assert found == sum(row >= 0 for row in expected)


ranges_and_codes = st.integers(1, 4).flatmap(
    lambda count: st.tuples(*[st.lists(st.lists(codes, max_size=12), min_size=count, max_size=count)] * 2)
)


@fixed
@given(ranges_and_codes)
def test_a_match_is_the_first_row_of_its_range(drawn: tuple[list[list[int]], list[list[int]]]) -> None:
    ranges, wanted = drawn
    check_match(ranges, [some + values for some, values in zip(wanted, ranges, strict=True)])


@fixed
@given(st.lists(next_to_each_other, min_size=1, max_size=8))
def test_large_codes_next_to_each_other_are_told_apart(page: list[int]) -> None:
    check_match([page], [page + [min(HIGH, code + 1) for code in page]])


@fixed
@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=12), min_size=1, max_size=4))
def test_run_lengths_count_the_rows_of_one_code_inside_its_range(ranges: list[list[int]]) -> None:
    bounds = np.cumsum([0, *map(len, ranges)])
    pages = [sorted(values) for values in ranges]
    rows = [
        int(start) + row
        for page, start in zip(pages, bounds, strict=False)
        for row in first_rows(page, sorted(set(page)))
    ]
    lengths = run_lengths(array([code for page in pages for code in page]), array(bounds), array(rows))
    assert lengths.tolist() == [page.count(code) for page in pages for code in sorted(set(page))]


@fixed
@given(st.lists(next_to_each_other, max_size=40, unique=True), st.lists(next_to_each_other, max_size=40))
def test_the_sparse_index_agrees_with_a_binary_search(firsts: list[int], wanted: list[int]) -> None:
    firsts.sort()
    asked = array([*wanted, *firsts, *(max(LOW, code - 1) for code in firsts), LOW, HIGH])
    expected = np.maximum(np.searchsorted(array(firsts), asked, side="right") - 1, 0)
    assert SparseIndex(array(firsts)).locate(asked).tolist() == expected.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_the_sparse_index_agrees_on_many_pages(seed: int) -> None:
    random = np.random.default_rng(seed)
    firsts = np.unique(np.concatenate([random.integers(LOW, HIGH, 5000), random.integers(0, 10**6, 5000)]))
    asked = np.concatenate([random.integers(LOW, HIGH, 20_000), random.integers(-10, 10**6, 20_000), firsts])
    expected = np.maximum(np.searchsorted(firsts, asked, side="right") - 1, 0)
    assert np.array_equal(SparseIndex(firsts).locate(asked), expected)


@fixed
@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.data())
def test_gathered_rows_are_those_asked_for(which: list[int], data: st.DataObject) -> None:
    used = set(which)
    batches = [
        pa.RecordBatch.from_pydict({"row": [100 * number + row for row in range(4)]}) if number in used else None
        for number in range(6)
    ]
    rows = data.draw(st.lists(st.integers(0, 3), min_size=len(which), max_size=len(which)))
    found, order = gather(batches, np.array(which, dtype=np.int32), array(rows))
    assert found.column("row").to_pylist() == [100 * which[index] + rows[index] for index in order]
    starts, stable = group(np.array(which, dtype=np.int32), 6)
    assert stable.tolist() == np.argsort(which, kind="stable").tolist() == order.tolist()
    assert np.diff(starts).tolist() == np.bincount(which, minlength=6).tolist()


def test_one_batch_is_gathered_in_the_order_given() -> None:
    batch = pa.RecordBatch.from_pydict({"row": [7, 8, 9]})
    found, order = gather([batch], np.zeros(4, dtype=np.int32), array([2, 0, 0, 1]))
    assert (found.column("row").to_pylist(), order.tolist()) == ([9, 7, 7, 8], [0, 1, 2, 3])
    assert concatenate([batch]) is batch
    assert concatenate([batch, batch]).num_rows == 6


@fixed
@given(st.lists(st.integers(-1, 30), max_size=60), st.integers(31, 40))
def test_matches_are_counted_by_row(rows: list[int], row_count: int) -> None:
    matched, matches, missing = count_matches(array(rows), row_count)
    expected = {row: rows.count(row) for row in sorted(set(rows)) if row >= 0}
    assert dict(zip(matched.tolist(), matches.tolist(), strict=True)) == expected
    assert matched.tolist() == sorted(expected)
    assert missing.tolist() == [place for place, row in enumerate(rows) if row < 0]
