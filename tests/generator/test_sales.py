"""The sales example: a catalogue of products and a stream of sales that fit together."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from semistream.core.errors import InvalidSettingError
from semistream.generator import ConstantArrivals, Sales, Workload, ZipfKeys, products
from semistream.generator.sales import PRODUCTS_SCHEMA, SALES_SCHEMA


def _catalogue(row_count: int, batch_rows: int = 1 << 16, seed: int = 1, stride: int = 1) -> pa.Table:
    return pa.Table.from_batches(
        products(row_count, seed=seed, stride=stride, batch_rows=batch_rows), schema=PRODUCTS_SCHEMA
    )


def test_products_are_sorted_and_have_the_ids_of_the_keys() -> None:
    assert _catalogue(1_000, stride=3)["product_id"].to_pylist() == list(range(3, 3_001, 3))


def test_each_product_has_its_own_surrogate_key() -> None:
    catalogue = _catalogue(10_000)
    assert pc.count_distinct(catalogue["surrogate_key"]).as_py() == 10_000
    assert pc.min(catalogue["surrogate_key"]).as_py() > 10_000


def test_products_have_suppliers_prices_and_names() -> None:
    catalogue = _catalogue(10_000)
    catalogue.validate(full=True)
    assert pc.min_max(catalogue["supplier_id"]).as_py() == {"min": 1, "max": 1_000}
    assert pc.min(catalogue["sale_price"]).as_py() >= Decimal("0.01")
    assert pc.max(catalogue["sale_price"]).as_py() <= Decimal("1000.00")
    assert pc.count_distinct(catalogue["product_name"]).as_py() == 10_000


def test_products_depend_on_the_seed_and_not_on_the_batch_size() -> None:
    assert _catalogue(5_000, 5_000).equals(_catalogue(5_000, 77))
    assert not _catalogue(100, seed=1)["sale_price"].equals(_catalogue(100, seed=2)["sale_price"])


def test_an_empty_catalogue_has_no_batches() -> None:
    assert list(products(0, seed=1)) == []


def test_every_sale_is_of_a_product_in_the_catalogue() -> None:
    sales = pa.Table.from_batches(Sales.of_products(500, seed=1, stride=2).batches(1_000, 20_000))
    assert sales.num_rows == 20_000
    assert pc.all(pc.is_in(sales["product_id"], _catalogue(500, stride=2)["product_id"])).as_py()


def test_sales_have_numbers_quantities_and_dates() -> None:
    sales = Sales(
        Workload(ZipfKeys(10, 1.0, seed=1), ConstantArrivals(2.0)), seed=1, start=datetime(2026, 5, 1, tzinfo=UTC)
    )
    first, second = sales.batches(3, 6)
    first.validate(full=True)
    assert first.schema == SALES_SCHEMA
    assert first["sale_id"].to_pylist() + second["sale_id"].to_pylist() == [1, 2, 3, 4, 5, 6]
    assert second["sale_date"][0].as_py() == datetime(2026, 5, 1, 0, 0, 1, 500_000, tzinfo=UTC)


def test_quantities_are_from_one_to_twelve_and_mostly_small() -> None:
    [batch] = Sales.of_products(100, seed=1).batches(50_000, 50_000)
    counts = np.bincount(batch["quantity"].to_numpy())
    assert counts[0] == 0
    assert len(counts) == 13
    assert counts[1] == counts.max()
    assert counts.min(where=np.arange(13) > 0, initial=50_000) > 0


def test_sales_without_arrival_times_are_a_second_apart() -> None:
    [batch] = Sales.of_products(100, seed=1).batches(10, 10)
    assert (batch["sale_date"][9].as_py() - batch["sale_date"][0].as_py()).total_seconds() == 9


def test_equal_seeds_give_equal_sales_in_batches_of_any_size() -> None:
    whole = pa.Table.from_batches(Sales.of_products(100, seed=1).batches(5_000, 5_000))
    parts = pa.Table.from_batches(Sales.of_products(100, seed=1).batches(123, 5_000))
    assert whole.equals(parts)


@pytest.mark.parametrize("arguments", [{"row_count": -1}, {"batch_rows": 0}, {"stride": 0}, {"supplier_count": 0}])
def test_senseless_catalogues_are_refused_in_one_sentence(arguments: dict[str, int]) -> None:
    with pytest.raises(InvalidSettingError, match=r"^\w+ must be a whole number of at least \d, but -?\d was given\.$"):
        products(**{"row_count": 10, "seed": 1, **arguments})
