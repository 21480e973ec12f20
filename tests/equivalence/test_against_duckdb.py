"""The same rows as another engine's join of larger tables, once for each algorithm."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from equivalence_runs import assert_counters_add_up, batches_of, every_algorithm, time_limit
from used_tables import ordered_by_use

from semistream.joining import join
from semistream.master_table import MasterTable
from semistream.store.contract import MasterStore
from semistream.store.memory import MemoryStore

MASTER_ROWS, STREAM_ROWS = 20_000, 100_000


@pytest.fixture(scope="module")
def products() -> pa.Table:
    random = np.random.default_rng(1)
    number = random.permutation(MASTER_ROWS)
    return pa.table(
        {
            "code": [f"P{value:07d}" for value in number],
            "number": number * 2,
            "name": [f"product {value % 977}" for value in number],
            "price": pa.array(number / 7, mask=number % 11 == 0),
        }
    )


@pytest.fixture(scope="module")
def sales() -> pa.Table:
    """A skewed stream with absent and null keys."""
    random = np.random.default_rng(2)
    number = np.minimum(random.zipf(1.3, STREAM_ROWS), MASTER_ROWS + 2000)
    number = np.where(random.random(STREAM_ROWS) < 0.3, random.integers(0, MASTER_ROWS + 500, STREAM_ROWS), number)
    nulls = random.random(STREAM_ROWS) < 0.01
    return pa.table(
        {
            "sale": np.arange(STREAM_ROWS),
            "number": pa.array(number * 2, mask=nulls),
            "code": pa.array(np.char.add("P", np.char.zfill(number.astype(str), 7)).tolist(), mask=nulls),
        }
    )


@pytest.fixture(scope="module", params=["number", "code"])
def key(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def expected(key: str, products: pa.Table, sales: pa.Table) -> pa.Table:
    added = f"p.name, p.price{', p.code as code_1' if key == 'number' else ', p.number as number_1'}"
    query = f"select s.*, {added} from sales s left join products p on s.{key} = p.{key} order by sale"
    with duckdb.connect() as database:
        database.register("sales", sales)
        database.register("products", products)
        return database.sql(query).to_arrow_table()


@pytest.fixture(scope="module", params=["in memory", "by use"])
def store(
    request: pytest.FixtureRequest, key: str, products: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> MasterStore:
    if request.param == "in memory":
        return MemoryStore(products, key, rows_per_page=100)
    path = tmp_path_factory.mktemp("products") / "by_use"
    return ordered_by_use(MasterTable.build(products, path, key, page_bytes=4096)).open()


@every_algorithm
def test_rows_are_those_of_duckdb(
    algorithm: str, key: str, store: MasterStore, sales: pa.Table, expected: pa.Table
) -> None:
    with time_limit(120):
        joined = join(
            batches_of(sales, 7000), store, on=key, how="left", algorithm=algorithm, memory="600KB", suffix="_1"
        )
        rows = joined.read_all().sort_by("sale")
    assert_counters_add_up(joined.stats, STREAM_ROWS)
    for name in expected.schema.names:
        assert (
            rows.column(name)
            .combine_chunks()
            .equals(expected.column(name).cast(rows.schema.field(name).type).combine_chunks())
        ), name
