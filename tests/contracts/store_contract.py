"""What every store must do; a new store adopts it by a subclass that says how one is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from semistream.core.arrays import Int64Array
from semistream.core.errors import UnknownColumnError
from semistream.store.contract import MasterStore, PageSet


def rows_of(pages: PageSet, columns: Sequence[str]) -> list[dict[str, object]]:
    """Return all rows of a page set."""
    rows: list[dict[str, object]] = pages.take(np.arange(len(pages.codes)), columns).to_pylist()
    return rows


def read_all(store: MasterStore) -> PageSet:
    """Read every page of a store that has some by one request."""
    return read(store, (0, store.page_count - 1))


def read(store: MasterStore, *ranges: tuple[int, int]) -> PageSet:
    """Read ranges of pages."""
    pages = np.array(ranges, dtype=np.int64).reshape(-1, 2)
    return store.read(np.ascontiguousarray(pages[:, 0]), np.ascontiguousarray(pages[:, 1]))


def codes_of(store: MasterStore, rows: pa.Table) -> Int64Array:
    """Return the codes of the keys of some rows."""
    return store.codec.encode([rows.column(name).combine_chunks() for name in store.key]).codes


def products(count: int = 3000) -> pa.Table:
    """Return rows with every third integer as key, shuffled."""
    order = np.random.default_rng(7).permutation(count)
    return pa.table(
        {
            "name": pa.array([f"product {number}" for number in order]),
            "id": pa.array(order * 3, pa.int64()),
            "price": pa.array([None if number % 7 == 0 else number / 4 for number in order], pa.float64()),
        }
    )


class StoreContract(ABC):
    """The obligations of `MasterStore` and `PageSet`."""

    @abstractmethod
    def make(self, rows: pa.Table, key: str | list[str], on_duplicate: str = "error") -> MasterStore:
        """Return a store of these rows with several pages."""

    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path) -> None:
        self.directory = tmp_path

    @pytest.fixture
    def rows(self) -> pa.Table:
        return products()

    @pytest.fixture
    def store(self, rows: pa.Table) -> MasterStore:
        return self.make(rows, "id")

    def test_all_pages_together_are_the_table(self, store: MasterStore, rows: pa.Table) -> None:
        assert store.page_count > 10
        assert store.row_count == len(rows)
        assert store.schema.equals(rows.schema)
        assert rows_of(read_all(store), rows.schema.names) == rows.sort_by("id").to_pylist()

    def test_a_row_is_on_the_page_that_locate_names(self, store: MasterStore, rows: pa.Table) -> None:
        codes = codes_of(store, rows)
        pages = store.locate(codes)
        assert pages.dtype == np.int32
        for page in range(store.page_count):
            assert set(read(store, (page, page)).codes) == set(codes[pages == page])

    def test_codes_that_no_row_has_are_located_too(self, store: MasterStore) -> None:
        far = np.array([np.iinfo(np.int64).min, -1, 1, 10**12, np.iinfo(np.int64).max])
        pages = store.locate(far)
        assert ((pages >= 0) & (pages < store.page_count)).all()

    def test_codes_ascend_inside_each_range(self, store: MasterStore) -> None:
        pages = read(store, (5, 9), (0, 2))
        assert pages.bounds.tolist()[0] == 0
        assert pages.bounds[-1] == len(pages.codes)
        for start, end in zip(pages.bounds[:-1], pages.bounds[1:], strict=True):
            assert (np.diff(pages.codes[start:end]) > 0).all()

    def test_ranges_come_in_the_order_given_and_may_overlap_and_repeat(self, store: MasterStore) -> None:
        ranges = [(7, 9), (8, 8), (0, 3), (7, 9), (2, 2)]
        pages = read(store, *ranges)
        alone = [rows_of(read(store, one), store.schema.names) for one in ranges]
        assert np.diff(pages.bounds).tolist() == [len(rows) for rows in alone]
        assert rows_of(pages, store.schema.names) == [row for rows in alone for row in rows]

    def test_take_gives_rows_in_the_order_asked_and_only_the_columns_asked(self, store: MasterStore) -> None:
        pages = read(store, (3, 8), (1, 1))
        everything = rows_of(pages, ["price", "id"])
        wanted = np.array([len(everything) - 1, 0, 17, 17, 3, 40])
        taken = pages.take(wanted, ["price", "id"])
        assert taken.schema.names == ["price", "id"]
        assert taken.to_pylist() == [everything[row] for row in wanted]

    def test_take_of_no_rows_has_the_columns(self, store: MasterStore) -> None:
        taken = read(store, (0, 1)).take(np.zeros(0, dtype=np.int64), ["name", "price"])
        assert (taken.num_rows, taken.schema.names) == (0, ["name", "price"])

    def test_an_unknown_column_is_refused(self, store: MasterStore) -> None:
        with pytest.raises((UnknownColumnError, KeyError)):
            read(store, (0, 0)).take(np.array([0]), ["colour"])

    def test_sizes_are_known_before_a_read(self, store: MasterStore) -> None:
        sizes = [store.range_bytes(page, page) for page in range(store.page_count)]
        assert 0 < max(sizes) <= store.largest_page_bytes
        assert max(sizes) <= store.range_bytes(0, store.page_count - 1) <= sum(sizes)
        assert store.index_bytes >= 8 * store.page_count
        assert read(store, (0, 3)).size_bytes > 0

    def test_a_page_set_outlives_its_store(self, store: MasterStore) -> None:
        pages = read(store, (2, 4))
        before = rows_of(pages, ["id"])
        store.close()
        assert rows_of(pages, ["id"]) == before

    def test_several_threads_may_read_at_once(self, store: MasterStore) -> None:
        ranges = [(page, min(page + 3, store.page_count - 1)) for page in range(store.page_count)]
        expected = [rows_of(read(store, one), store.schema.names) for one in ranges]
        with ThreadPoolExecutor(4) as threads:
            rows = threads.map(lambda one: rows_of(read(store, one), store.schema.names), ranges)
            assert list(rows) == expected

    def test_all_rows_of_a_key_are_on_one_page(self) -> None:
        ids = np.repeat(np.arange(200), np.arange(200) % 13 * 9)
        rows = pa.table({"id": ids, "n": np.arange(len(ids))})
        store = self.make(rows, "id", on_duplicate="all")
        assert not store.unique
        seen: set[int] = set()
        for page in range(store.page_count):
            here = set(read(store, (page, page)).codes.tolist())
            assert not here & seen
            seen |= here
        assert rows_of(read_all(store), ["id", "n"]) == rows.to_pylist()

    def test_a_table_without_rows_can_be_asked(self) -> None:
        store = self.make(products(0), "id")
        assert (store.row_count, store.page_count) == (0, 0)
        assert store.locate(np.array([-5, 0, 7])).tolist() == [0, 0, 0]

    def test_keys_that_are_not_integers_are_found_by_their_code(self) -> None:
        rows = products(2000)
        for key in (["name"], ["price_text", "id"]):
            keyed = rows.append_column("price_text", rows.column("price").cast(pa.string()).fill_null("none"))
            store = self.make(keyed, key)
            pages = store.locate(codes_of(store, keyed))
            for page in range(0, store.page_count, 5):
                stored = rows_of(read(store, (page, page)), keyed.schema.names)
                expected = keyed.filter(pa.array(pages == page)).to_pylist()
                assert sorted(stored, key=repr) == sorted(expected, key=repr)

    def test_a_store_can_be_closed_by_a_with_statement(self, rows: pa.Table) -> None:
        with self.make(rows, "id") as store:
            assert store.row_count == len(rows)

    def test_the_size_of_a_store_is_what_a_read_of_all_pages_transfers(self, store: MasterStore) -> None:
        assert store.size_bytes == store.range_bytes(0, store.page_count - 1)
        assert self.make_empty().size_bytes == 0

    def test_a_store_has_one_identity_for_as_long_as_it_lives(self, store: MasterStore) -> None:
        assert store.identity
        assert store.identity == store.identity
        assert store.identity != self.make_empty().identity

    def test_no_code_has_changed_since_the_version_that_a_store_shows(self, store: MasterStore, rows: pa.Table) -> None:
        codes = np.append(codes_of(store, rows), [-1, 10**12])
        assert store.unchanged_since(store.version, store.identity)(codes).tolist() == [True] * len(codes)

    def test_any_code_may_have_changed_since_a_version_that_nobody_knows(self, store: MasterStore) -> None:
        codes = np.arange(10, dtype=np.int64)
        for version in (store.version, store.version + 1, 0):
            same = store.unchanged_since(version, "of another table")(codes)
            assert (same.dtype, same.tolist()) == (np.bool_, [False] * 10)
        assert not len(store.unchanged_since(store.version, store.identity)(codes[:0]))

    def make_empty(self) -> MasterStore:
        """Return a store without rows, of a table of its own."""
        self.directory = self.directory / "empty"
        self.directory.mkdir()
        return self.make(products(0), "id")
