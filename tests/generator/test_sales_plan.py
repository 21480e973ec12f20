"""A plan says what the sales are like, and the sales are like that."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from semistream.core.errors import InvalidSettingError
from semistream.generator import Sales, SalesPlan
from semistream.generator.sales_plan import ARRIVALS


def _sales(plan: SalesPlan, rows: int = 20_000) -> pa.Table:
    return pa.Table.from_batches(plan.sales().rows(0, rows))


def test_planned_sales_are_of_the_products_that_sales_of_products_has() -> None:
    planned = _sales(SalesPlan(products=500, seed=3, stride=2, exponent=0.7))
    direct = pa.Table.from_batches(Sales.of_products(500, seed=3, stride=2, exponent=0.7).batches(1_000, 20_000))
    columns = ["sale_id", "product_id", "quantity"]
    assert planned.select(columns).equals(direct.select(columns))


def test_a_plan_that_travelled_to_another_process_gives_the_same_sales() -> None:
    plan = SalesPlan(products=100, arrivals="bursty", stride=3, absent=0.2)
    assert _sales(pickle.loads(pickle.dumps(plan))).equals(_sales(plan))


@pytest.mark.parametrize("arrivals", ARRIVALS)
def test_sales_keep_the_mean_rate_and_begin_at_the_start(arrivals: str) -> None:
    start = datetime(2027, 3, 1, tzinfo=UTC)
    plan = SalesPlan(products=100, rate=200.0, arrivals=arrivals, start=start)  # type: ignore[arg-type]
    assert plan.arrival_times().mean_rate == pytest.approx(200)
    assert plan.arrival_times().arrived_by(50_000) == pytest.approx(10_000_000, rel=0.02)
    assert 0 <= (_sales(plan)["sale_date"][0].as_py() - start).total_seconds() < 300


def test_the_dates_are_the_arrival_times() -> None:
    plan = SalesPlan(products=100, arrivals="poisson")
    microseconds = _sales(plan)["sale_date"].cast(pa.int64()).to_numpy() - round(plan.start.timestamp() * 1e6)
    np.testing.assert_allclose(microseconds / 1e6, plan.arrival_times().take(20_000), atol=1e-6)


def test_the_share_of_absent_products_is_kept() -> None:
    ids = _sales(SalesPlan(products=100, stride=2, absent=0.25), 100_000)["product_id"].to_numpy()
    assert (ids % 2).mean() == pytest.approx(0.25, abs=0.01)


def test_sorted_ranks_sell_the_first_product_most_and_shuffled_ones_another() -> None:
    hottest = {
        ranks: int(np.bincount(_sales(SalesPlan(products=1_000, ranks=ranks))["product_id"].to_numpy()).argmax())  # type: ignore[arg-type]
        for ranks in ("sorted", "shuffled")
    }
    assert hottest["sorted"] == 1
    assert hottest["shuffled"] != 1


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"products": 0}, "products must be a whole number of at least 1, but 0 was given."),
        ({"exponent": math.nan}, "exponent must be a number of at least 0, but nan was given."),
        ({"ranks": "random"}, "ranks must be 'sorted' or 'shuffled', but 'random' was given."),
        ({"stride": 0}, "stride must be a whole number of at least 1, but 0 was given."),
        ({"stride": 2**62}, "products times stride must fit in 64 bits: lower one of them."),
        ({"absent": 1.5}, "absent must be a share from 0 to 1, but 1.5 was given."),
        (
            {"absent": 0.5},
            "absent needs gaps between the products: set stride to 2 or more, here and for the master table.",
        ),
        ({"seed": -1}, "seed must be a whole number of at least 0, but -1 was given."),
        ({"rate": 0}, "rate must be a number above 0, but 0 was given."),
        ({"step_seconds": 0}, "step_seconds must be a number above 0, but 0 was given."),
        ({"on_seconds": 0}, "on_seconds must be a number above 0, but 0 was given."),
        ({"off_seconds": -1}, "off_seconds must be a number of at least 0, but -1 was given."),
        (
            {"start": datetime(2026, 1, 1)},
            "start must have a time zone, but 2026-01-01T00:00:00 has none: add one.",
        ),
    ],
)
def test_senseless_plans_are_refused_in_one_sentence(setting: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidSettingError) as error:
        SalesPlan(**{"products": 10, **setting})  # type: ignore[arg-type]
    assert str(error.value) == message


def test_an_unknown_kind_of_arrivals_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match=r"arrivals must be 'constant' or .*, but 'never' was given"):
        SalesPlan(products=10, arrivals="never")  # type: ignore[arg-type]


def test_the_generators_do_without_spark() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None; from semistream.generator import SalesPlan; SalesPlan(products=1)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
