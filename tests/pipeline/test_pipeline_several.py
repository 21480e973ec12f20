"""Several sources, several dimensions, sorted micro-batches, and what happens to rows without a match."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pipeline_runs import PRODUCTS, SCHEMA, SmallPipeline, sale
from pyspark.sql import DataFrame, SparkSession

import semistream as ss
from semistream.core.errors import InvalidSettingError, NameClashError, SchemaDriftError, UnknownColumnError
from semistream.pipeline.checked_start import CheckedStart
from semistream.pipeline.failures import CheckpointMismatchError, PipelineFailedError
from semistream.pipeline.planning import plan_pipeline
from semistream.pipeline.remembered import Remembered, read_remembered, write_remembered
from semistream.pipeline.sealed_json import write_sealed
from semistream.pipeline.worker_memory import needed_memory
from semistream.spark import operator
from semistream.spark.batch_progress import BatchProgress
from semistream.spark.task import EnrichTask
from servers.s3 import S3Server

JSON = f'[[source]]\nformat = "json"\npath = "incoming"\nschema = "{SCHEMA}"\nmax_files_per_trigger = 1\n'
CSV = """[[source]]
format = "csv"
path = "tables"
schema = "quantity SMALLINT, sale_id INT, product_id BIGINT"
options = { header = true }
"""
MAKERS = pa.table({"maker": pa.array([7, 8], pa.int64()), "country": ["NZ", "PK"], "name": ["Acme", "Nib & Sons"]})
STAR = """[[dimension]]
table = "products"
on = "product_id"
how = "left"
[[dimension]]
table = "makers"
on = "maker"
suffix = "_of_maker"
"""


def _with_makers(small: SmallPipeline) -> None:
    small.build(PRODUCTS.append_column("maker", pa.array([7, 8, 9], pa.int64())))
    ss.MasterTable.build(MAKERS, small.folder / "makers", key="maker")


def operators_of(rows: DataFrame) -> int:
    """Return how many Python operators a plan has."""
    return str(rows._jdf.queryExecution().analyzed().toString()).count("MapInArrow")


def _csv(small: SmallPipeline, text: str) -> None:
    (small.folder / "tables").mkdir(exist_ok=True)
    (small.folder / "tables" / "0.csv").write_text("quantity,sale_id,product_id\n" + text)


def test_sources_are_united_by_name_and_rows_meet_one_dimension_after_the_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    small = SmallPipeline(spark, tmp_path / "small", source=JSON + CSV, dimension=STAR)
    _with_makers(small)
    small.arrive("0.json", [sale(1, 1, 5), sale(2, 3), sale(3, 99)])
    _csv(small, "4,10,2\n1,11,1\n")
    told: list[BatchProgress] = []
    totals = small.run(told.append)
    makers = {row["maker"]: row for row in MAKERS.to_pylist()}
    products = {row["product_id"]: {**row, "maker": 6 + row["product_id"]} for row in PRODUCTS.to_pylist()}
    expected = []
    for row in (sale(1, 1, 5), sale(2, 3), sale(3, 99), sale(10, 2, 4), sale(11, 1)):
        product = products.get(row["product_id"], {"maker": None})
        maker = makers.get(product["maker"])
        if maker is not None:  # the second join is an inner one, and product 3 has a maker that nobody knows
            expected.append({**row, **product, "country": maker["country"], "name_of_maker": maker["name"]})
    assert small.written() == expected
    assert totals.rows_in == 5
    planned = plan_pipeline(spark, small.description)
    names = ["source 1: json", "source 2: csv", "union of sources", "dimension products", "dimension makers"]
    assert [step.name for step in planned.steps] == names
    assert planned.steps[2].schema.simpleString() == "struct<sale_id:bigint,product_id:bigint,quantity:int>"
    assert planned.steps[-1].schema.names[-2:] == ["country", "name_of_maker"]
    memory = needed_memory(spark, small.description)
    assert (memory.operators, memory.budget_bytes) == (1, 16_000_000), "the dimensions share an operator and its memory"
    assert operators_of(planned.rows) == 1
    assert [one.name for one in told[0].enrichments] == ["small.products", "small.makers"]
    assert [one.tuples_in for one in told[0].enrichments] == [5, 5]


@pytest.mark.parametrize("enrich", ['order = "any"', 'algorithm = "hybridjoin"', 'max_wait = "1 second"'])
def test_dimensions_whose_rows_need_not_keep_their_order_are_operators_of_their_own(
    spark: SparkSession, tmp_path: Path, enrich: str
) -> None:
    small = SmallPipeline(spark, tmp_path / "small", dimension=STAR, enrich=f'memory = "16MB"\n{enrich}')
    _with_makers(small)
    planned = plan_pipeline(spark, small.description)
    assert [step.name for step in planned.steps] == ["source", "dimension products", "dimension makers"]
    assert planned.steps[-1].schema.names[-2:] == ["country", "name_of_maker"]
    memory = needed_memory(spark, small.description)
    assert (memory.operators, memory.budget_bytes) == (2, 8_000_000), "the memory is divided between the dimensions"
    assert operators_of(planned.rows) == 2


def test_what_does_not_fit_in_a_star_is_said_of_its_dimension(spark: SparkSession, tmp_path: Path) -> None:
    small = SmallPipeline(spark, tmp_path / "small", dimension=STAR.replace('suffix = "_of_maker"', ""))
    _with_makers(small)
    with pytest.raises(NameClashError, match=r"\[\[dimension\]\] number 2 does not fit: .* column 'name'"):
        plan_pipeline(spark, small.description)
    small.parts |= {"dimension": STAR, "enrich": 'memory = "16MB"\nroom = "room"'}
    with pytest.raises(InvalidSettingError, match="room is not used"):
        plan_pipeline(spark, small.description)


@pytest.mark.parametrize(
    ("second", "kind", "says"),
    [
        (CSV.replace("sale_id INT, ", ""), UnknownColumnError, "number 2 lacks the column 'sale_id', unlike the first"),
        (CSV.replace("sale_id", "sales_id"), UnknownColumnError, "number 2 lacks the column 'sale_id'"),
        (CSV.replace("BIGINT", "BIGINT, more INT"), UnknownColumnError, "number 2 has a column 'more', unlike"),
    ],
)
def test_sources_with_other_columns_are_refused_before_spark_is_needed(
    spark: SparkSession, tmp_path: Path, second: str, kind: type[Exception], says: str
) -> None:
    small = SmallPipeline(spark, tmp_path / "small", source=JSON + second)
    small.build()
    with pytest.raises(kind, match=says):
        CheckedStart(small.description)


@pytest.mark.parametrize(
    ("schema", "other", "says"),
    [
        ("sale_id BIGINT, at TIMESTAMP", "sale_id BIGINT, at TIMESTAMP_NTZ", "'at' as timestamp_ntz, but the first"),
        ("sale_id BIGINT, at STRING", "sale_id BIGINT, at INT", "'at' as int, but the first source as string"),
        ("sale_id BIGINT, at DECIMAL(9,2)", "sale_id BIGINT, at DOUBLE", "'at' as double"),
    ],
)
def test_columns_of_different_kinds_are_not_united(
    spark: SparkSession, tmp_path: Path, schema: str, other: str, says: str
) -> None:
    small = SmallPipeline(
        spark,
        tmp_path / "small",
        source=JSON.replace(SCHEMA, schema) + JSON.replace(SCHEMA, other),
        dimension='table = "products"\non = { sale_id = "product_id" }',
    )
    small.build()
    with pytest.raises(InvalidSettingError, match=says):
        plan_pipeline(spark, small.description)


def test_a_checkpoint_knows_all_its_sources_and_dimensions_in_their_order(spark: SparkSession, tmp_path: Path) -> None:
    small = SmallPipeline(spark, tmp_path / "small", source=JSON + CSV, dimension=STAR)
    _with_makers(small)
    small.arrive("0.json", [sale(1, 1)])
    _csv(small, "4,10,2\n")
    small.run()
    for changed, says in (
        ({"source": JSON}, "1 source, but the checkpoint .* to 2 sources, and Spark cannot add"),
        ({"source": CSV + JSON}, r"\[\[source\]\] number 1: is csv .*tables, but the checkpoint .* json"),
        ({"dimension": STAR.split('[[dimension]]\ntable = "makers"')[0]}, "1 dimension, but the checkpoint"),
        ({"dimension": STAR.replace("makers", "products")}, "number 2 does not fit: The master table no longer has"),
    ):
        before = dict(small.parts)
        small.parts.update(changed)
        with pytest.raises((CheckpointMismatchError, SchemaDriftError), match=says):
            CheckedStart(small.description)
        small.parts = before
    CheckedStart(small.description)


def test_a_room_can_be_neither_added_to_a_checkpoint_nor_taken_away(spark: SparkSession, tmp_path: Path) -> None:
    for first, second, says in (
        ('memory = "16MB"', 'memory = "16MB"\nmax_wait = "1 second"', "wait in 1 rooms, but the checkpoint .* has 0"),
        ('memory = "16MB"\nmax_wait = "0 seconds"', 'memory = "16MB"', "wait in 0 rooms, but the checkpoint .* has 1"),
    ):
        small = SmallPipeline(spark, tmp_path / str(len(first)), enrich=first)
        small.build()
        small.arrive("0.json", [sale(1, 1)])
        small.run()
        CheckedStart(small.description)
        small.parts["enrich"] = second
        with pytest.raises(CheckpointMismatchError, match=says):
            CheckedStart(small.description)


def test_what_a_checkpoint_of_one_source_remembers_is_read_as_before(tmp_path: Path) -> None:
    old = {
        "join": {"on": ["a"]},
        "columns": {"a": "int64"},
        "belongings": {
            "id": "i",
            "checkpoint": "c",
            "source": {"format": "json"},
            "master": "m",
            "sink": {"path": "s"},
        },
    }
    write_sealed(tmp_path / "semistream.json", 2, old, replace=True)
    found = read_remembered(tmp_path)
    assert found is not None
    assert found.belongings is not None
    assert (found.joins, found.columns, found.source_columns) == ([{"on": ["a"]}], [{"a": "int64"}], [None])
    assert (found.belongings.sources, found.belongings.masters) == ([{"format": "json"}], ["m"])
    write_remembered(tmp_path, found)
    assert read_remembered(tmp_path) == found == Remembered(found.joins, found.columns, [None], found.belongings)


def test_bad_records_of_each_source_go_to_a_folder_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    sources = f'{JSON}dead_letters = "first"\n{CSV}dead_letters = "second"\n'
    small = SmallPipeline(spark, tmp_path / "small", source=sources)
    small.build()
    small.arrive("0.json", [sale(1, 1), "poison"])
    _csv(small, "4,10,2\nmany,11,1\n")
    small.run()
    assert [row["sale_id"] for row in small.written()] == [1, 10]
    records = [
        json.loads(line)["record"]
        for folder in ("first", "second")
        for file in (small.folder / folder).glob("batch=*/*.json")
        for line in file.read_text().splitlines()
    ]
    assert records == ["poison", "many,11,1"]


def test_a_micro_batch_is_sorted_as_a_whole(spark: SparkSession, tmp_path: Path) -> None:
    steps = '[[transform]]\nfilter = "quantity > 0"\n[[transform]]\nsort = ["quantity desc", "sale_id"]\n'
    small = SmallPipeline(
        spark, tmp_path / "small", transform=steps, source=JSON.replace("max_files_per_trigger = 1", "")
    )
    small.build()
    for file in range(3):
        small.arrive(f"{file}.json", [sale(30 - 3 * row - file, row % 3 + 1, row % 4) for row in range(10)])
    small.run()
    (file,) = (small.folder / "warehouse").glob("part-*.parquet")
    found = [(row["quantity"], row["sale_id"]) for row in pq.read_table(file).to_pylist()]
    assert found == sorted(found, key=lambda row: (-row[0], row[1]))
    assert len(found) == 3 * 7
    assert spark.conf.get("spark.sql.streaming.unsupportedOperationCheck") == "true"


def test_a_sort_hides_nothing_else_that_a_stream_cannot_have(spark: SparkSession, tmp_path: Path) -> None:
    steps = '[[transform]]\nset = {n = "row_number() over (order by sale_id)"}\n[[transform]]\nsort = ["sale_id"]\n'
    small = SmallPipeline(spark, tmp_path / "small", transform=steps)
    small.build()
    with pytest.raises(InvalidSettingError, match=r"\[\[transform\]\] cannot be applied to a stream"):
        plan_pipeline(spark, small.description)


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_row_without_a_match_stops_the_pipeline_if_it_must_not_be(
    spark: SparkSession, tmp_path: Path, how: str
) -> None:
    dimension = f'table = "products"\non = "product_id"\nhow = "{how}"\nunmatched = "fail"'
    small = SmallPipeline(spark, tmp_path / "small", dimension=dimension)
    small.build()
    small.arrive("0.json", [sale(1, 1), sale(2, 3)])
    small.run()
    small.arrive("1.json", [sale(3, 1), sale(4, 77)])
    with pytest.raises(PipelineFailedError, match="no match in the master table products, among them one with key 77"):
        small.run()
    expected: list[dict[str, Any]] = [
        {**sale(1, 1), "name": "pen", "price": 150},
        {**sale(2, 3), "name": "nib", "price": 75},
    ]
    assert small.written() == expected
    small.parts["dimension"] = dimension.replace('unmatched = "fail"', "")
    small.run()
    assert [row["sale_id"] for row in small.written()] == ([1, 2, 3] if how == "inner" else [1, 2, 3, 4])


def test_columns_of_a_source_that_tells_them_may_be_added_but_not_lost_or_retyped(
    spark: SparkSession, tmp_path: Path
) -> None:
    small = SmallPipeline(spark, tmp_path / "small", source='format = "parquet"\npath = "incoming"')
    small.build()
    first = pa.table({"sale_id": [1], "product_id": [1], "note": ["x"]})

    def arrive(name: str, rows: pa.Table) -> None:
        for old in small.incoming.glob("*.parquet"):
            old.unlink()
        pq.write_table(rows, small.incoming / name)

    arrive("0.parquet", first)
    small.run()
    arrive("1.parquet", pa.table({"extra": [5], "sale_id": [2], "product_id": [2], "note": ["y"]}))
    small.run()
    assert [set(row) for row in small.written()] == [{"sale_id", "product_id", "note", "name", "price"}] * 2
    arrive("2.parquet", pa.table({"sale_id": [3], "product_id": [2]}))
    with pytest.raises(SchemaDriftError, match=r"\[source\] no longer has the column 'note'"):
        small.run()
    arrive("3.parquet", pa.table({"sale_id": [3], "product_id": [2], "note": [4]}))
    with pytest.raises(SchemaDriftError, match=r"\[source\] has bigint and no longer string in the column 'note'"):
        small.run()
    assert len(small.written()) == 2


@pytest.mark.parametrize("order", ["input", "any"])
def test_disk_is_for_the_dimensions_in_object_stores_alone(
    spark: SparkSession, tmp_path: Path, s3: S3Server, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    given: dict[str, int | None] = {}

    def noted(*arguments: Any, **settings: Any) -> EnrichTask:
        task = operator.task_of(*arguments, **settings)
        given[task.table.scheme] = task.disk_bytes
        return task

    for module in ("star", "enrichment"):
        monkeypatch.setattr(f"semistream.spark.{module}.task_of", noted)
    makers = s3.address("makers")
    small = SmallPipeline(
        spark,
        tmp_path / "small",
        enrich=f'memory = "32MB"\ndisk = "64MB"\norder = "{order}"',
        dimension=STAR.replace('table = "makers"', f'table = "{makers}"'),
    )
    small.build(PRODUCTS.append_column("maker", pa.array([7, 8, 9], pa.int64())))
    ss.MasterTable.build(MAKERS, makers, key="maker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan_pipeline(spark, small.description)
    assert given == {"file": None, "s3": 64_000_000}
