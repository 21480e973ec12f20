"""`enrich` with a list of dimensions: one operator, the rows of a chain, a version pinned for each dimension."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from enrich_operators import FailsOnce
from enrich_runs import SalesStream, batch_statistics, build, multiset, products, sales, statistics
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import semistream as ss
from semistream.core.errors import BudgetTooSmallError, InvalidSettingError, NameClashError, UnknownColumnError

NAMES = pa.table(
    {
        "name": [f"name {number} of version 1" for number in range(0, 3000, 4)],
        "rank": pa.array(range(750), pa.int32()),
        "seen": pa.array([number * 10**6 for number in range(750)], pa.timestamp("us", "UTC")),
    }
)


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    """Return a table of products and one of their names."""
    return build(tmp_path), build(tmp_path / "second", NAMES, "name")


def operators_of(rows: DataFrame) -> int:
    return str(rows._jdf.queryExecution().analyzed().toString()).count("MapInArrow")


def dimensions(tables: tuple[Path, Path]) -> list[ss.Dimension]:
    return [
        ss.Dimension(tables[0], on="PRODUCT_ID", how="left_outer", replace={"product_id": "name"}),
        ss.Dimension(tables[1], on="name", how="inner", columns=["rank", "seen"], name="ranks"),
        ss.Dimension(tables[0], on={"sale_id": "product_id"}, columns=["price"], suffix="_of_sale", matched="known"),
    ]


def test_a_star_on_spark_is_one_operator_with_the_rows_and_types_of_a_chain(
    spark: SparkSession, tables: tuple[Path, Path], tmp_path: Path
) -> None:
    source = SalesStream(spark, tmp_path / "stream")
    source.arrive(sales(0, 2000))
    rows = source.batch().withColumnRenamed("note", "a.dotted note")
    star = ss.enrich(rows, dimensions(tables), how="left", memory="16MB", name="shop")
    chain = rows
    for one in dimensions(tables):
        settings = {name: getattr(one, name) for name in ("on", "columns", "replace", "suffix", "matched")}
        chain = ss.enrich(chain, one.table, how=one.how or "left", memory="16MB", **settings)
    assert (operators_of(star), operators_of(chain)) == (1, 3)
    assert star.schema == chain.schema
    assert multiset(star) == multiset(chain)
    star.collect()
    told = {one.name: one for one in batch_statistics(star)}
    assert list(told) == ["shop.products", "ranks", "shop.products-3"]
    assert told["shop.products"].tuples_in == 2000
    assert told["ranks"].tuples_in == 2000 > told["ranks"].rows_out == told["shop.products-3"].rows_out > 0
    assert all(one.memory_bytes <= 16_000_000 for one in told.values())


def test_a_replay_of_a_star_sees_the_version_of_each_dimension_again(
    spark: SparkSession, tables: tuple[Path, Path], tmp_path: Path
) -> None:
    source = SalesStream(spark, tmp_path / "stream")
    source.arrive(*(sales(number * 300, 300) for number in range(3)))
    allowed = tmp_path / "allowed"

    def query() -> DataFrame:
        names = ["products", "ranks"]
        both = [
            ss.Dimension(tables[0], on="product_id", how="left", columns=["name", "price"], name=names[0]),
            ss.Dimension(tables[1], on="name", how="left", columns=["rank"], name=names[1]),
        ]
        enriched = ss.enrich(source.stream(), both, memory="8MB")
        return enriched.mapInArrow(FailsOnce(305, allowed), enriched.schema)

    with pytest.raises(PySparkException, match="cannot be written yet"):
        source.run(query())
    ss.MasterTable(tables[0]).merge(products(version=2).slice(0, 100))
    changed = NAMES.slice(0, 500).set_column(1, "rank", pa.array([-1] * 500, pa.int32()))
    ss.MasterTable(tables[1]).merge(changed)
    ss.MasterTable(tables[1]).merge(changed.slice(0, 1))
    allowed.touch()
    told = statistics(source.run(query()))
    assert [(one.batch_id, one.version) for one in told["products"]] == [(1, 1), (2, 2)]
    assert [(one.batch_id, one.version) for one in told["ranks"]] == [(1, 1), (2, 3)]
    by_name = {row["name"]: row["rank"] for row in NAMES.to_pylist()}
    now = by_name | {row["name"]: -1 for row in changed.to_pylist()}
    first = {row["product_id"]: row for row in products().to_pylist()}
    second = first | {row["product_id"]: row for row in products(version=2).slice(0, 100).to_pylist()}
    expected = []
    for row in pa.concat_tables(sales(number * 300, 300) for number in range(3)).to_pylist():
        is_old = row["sale_id"] < 600
        product = (first if is_old else second).get(row["product_id"], {"name": None, "price": None})
        rank = (by_name if is_old else now).get(product["name"])
        expected.append((*row.values(), product["name"], product["price"], rank))
    assert sorted(map(tuple, source.written().collect())) == sorted(expected)


def test_a_list_of_dimensions_that_cannot_be_a_star_is_refused_in_one_sentence(
    spark: SparkSession, tables: tuple[Path, Path]
) -> None:
    rows = spark.createDataFrame([(1, 2)], "sale_id BIGINT, product_id BIGINT")
    one = ss.Dimension(tables[0], on="product_id")
    for kind, says, given, settings in (
        (InvalidSettingError, "has to be a list of ss.Dimension", [tables[0]], {}),
        (InvalidSettingError, "has to be a list of ss.Dimension", [], {}),
        (InvalidSettingError, "`columns` belongs to each of them", [one], {"columns": ["name"]}),
        (InvalidSettingError, "`on` belongs to each of them", one, {"on": "product_id"}),
        (InvalidSettingError, "wait in a room .* call enrich once for each", [one], {"room": "r", "max_wait": 1}),
        (InvalidSettingError, "parked .* call enrich once", [ss.Dimension("t", on="a", unmatched="park")], {}),
        (InvalidSettingError, "only in the order of the input", [one], {"order": "any"}),
        (InvalidSettingError, "here cachejoin has order 'any'", [one], {"algorithm": "cachejoin"}),
        (NameClashError, "called 'x': give each a `name`", [ss.Dimension(tables[0], on="a", name="x")] * 2, {}),
        (NameClashError, "column 'name'", [one, one], {}),
        (UnknownColumnError, "no column 'maker'", [ss.Dimension(tables[0], on={"maker": "product_id"})], {}),
        (InvalidSettingError, "is not a join type", [ss.Dimension(tables[0], on="product_id", how="full")], {}),
        (
            BudgetTooSmallError,
            "each of 12 dimensions has .* at least about",
            [ss.Dimension(tables[0], on="product_id", how="semi", name=f"d{number}") for number in range(12)],
            {"memory": "4MB"},
        ),
    ):
        with pytest.raises(kind, match=says) as raised:
            ss.enrich(rows, given, **settings)  # type: ignore[arg-type]
        assert str(raised.value).count(". ") == 0
    with pytest.raises(InvalidSettingError, match="on is None: give a column name"):
        ss.enrich(rows, tables[0])
