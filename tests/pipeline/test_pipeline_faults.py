"""Bad input and faults in pipelines: what happens is what docs promise, and never a wrong row."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pipeline_runs import PRODUCTS, SmallPipeline, sale
from pyspark.sql import SparkSession

from semistream.core.errors import (
    InvalidSettingError,
    KeyTypeError,
    MasterNotFoundError,
    SchemaDriftError,
    SemistreamError,
    UnknownColumnError,
)
from semistream.pipeline.failures import PoisonRecordError
from semistream.pipeline.planning import plan_pipeline
from semistream.spark import spark_session
from semistream.spark.batch_progress import BatchProgress
from semistream.spark.spark_session import CheckpointInUseError, CheckpointLock

SECRET = "payload-4711"


@pytest.fixture
def small(spark: SparkSession, tmp_path: Path) -> SmallPipeline:
    """Return a pipeline whose master table is built."""
    made = SmallPipeline(spark, tmp_path / "small")
    made.build()
    return made


@pytest.fixture
def session_zone(spark: SparkSession) -> Iterator[None]:
    """Put the session's zone back after the test."""
    before = spark.conf.get("spark.sql.session.timeZone")
    yield
    assert before is not None
    spark.conf.set("spark.sql.session.timeZone", before)


def test_null_and_absent_keys_empty_batches_and_the_counts_of_them(small: SmallPipeline) -> None:
    small.arrive("1.json", [sale(1, 1), sale(2, None), sale(3, 99), sale(4, 3)])
    small.arrive("2.json", [])
    small.arrive("3.json", [sale(5, 99), sale(6, 99)])
    batches: list[BatchProgress] = []
    totals = small.run(batches.append)
    assert [(row["sale_id"], row["name"], row["price"]) for row in small.written()] == [
        *[(1, "pen", 150), (2, None, None), (3, None, None), (4, "nib", 75), (5, None, None), (6, None, None)]
    ]
    assert [batch.batch_id for batch in batches] == [0, 1, 2], "an empty batch advances the stream"
    assert (totals.rows_in, totals.rows_out, totals.batches) == (6, 6, 3)
    assert (totals.counts["null_keys"], totals.counts["absent"]) == (1, 3)
    assert totals.counts["read_hits"] + totals.counts["cache_hits"] == 2
    assert totals.counts["read_requests"] <= 3

    # The same stream into the rows that have a match, from a checkpoint of its own.
    small.parts |= {
        "pipeline": 'name = "inner"\ncheckpoint = "inner_state"',
        "dimension": 'table = "products"\non = "product_id"',
    }
    small.parts["sink"] = 'format = "noop"'
    inner = small.run()
    assert (inner.rows_in, inner.rows_out) == (6, 2)
    assert (inner.counts["null_keys"], inner.counts["absent"]) == (1, 3)


def test_an_empty_master_table_gives_no_error(small: SmallPipeline) -> None:
    small.build(PRODUCTS.slice(0, 0))
    small.arrive("1.json", [sale(1, 1), sale(2, None)])
    assert small.run().rows_out == 2
    assert [row["name"] for row in small.written()] == [None, None]


def test_keys_of_different_types_are_refused_before_the_start(spark: SparkSession, small: SmallPipeline) -> None:
    small.parts["source"] = small.parts["source"].replace("product_id BIGINT", "product_id STRING")
    with pytest.raises(KeyTypeError, match=r"\[\[dimension\]\].*(string.*int64|int64.*string)"):
        plan_pipeline(spark, small.description)
    small.parts["dimension"] = 'table = "products"\non = "prodct_id"'
    with pytest.raises(UnknownColumnError, match=r"\[\[dimension\]\]"):
        plan_pipeline(spark, small.description)
    small.parts["dimension"] = 'table = "nowhere"\non = "product_id"'
    with pytest.raises(MasterNotFoundError, match=r"\[\[dimension\]\]"):
        plan_pipeline(spark, small.description)


@pytest.mark.usefixtures("session_zone")
def test_the_same_moments_match_in_any_zone_of_the_session(spark: SparkSession, tmp_path: Path) -> None:
    # The second hour exists twice in Berlin, the third is left out in New York.
    moments = ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-03-08T02:30:00Z"]
    stamps = (
        pa.array([text.removesuffix("Z") for text in moments]).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    )
    master = pa.table({"at": stamps, "label": ["first", "second", "third"]})
    actual = []
    for zone in ("UTC", "Europe/Berlin", "America/New_York"):
        spark.conf.set("spark.sql.session.timeZone", zone)
        here = SmallPipeline(
            spark, tmp_path / zone.replace("/", "_"), dimension='table = "products"\non = "at"\nhow = "left"'
        )
        here.parts["source"] = here.parts["source"].replace("product_id BIGINT", "at TIMESTAMP")
        here.build(master, key="at")
        texts = [*moments, "2026-10-25T00:30:00", "2026-10-25T02:30:00+02:00", "2026-03-08 02:30:00"]
        here.arrive("1.json", [{"sale_id": number, "at": text} for number, text in enumerate(texts)])
        here.run()
        table = here.table().sort_by("sale_id")
        actual.append((table["label"].to_pylist(), table["at"].cast(pa.int64()).to_pylist()))
    assert actual[0][0] == ["first", "second", "third", "first", "first", "third"]
    assert actual[1] == actual[0]
    assert actual[2] == actual[0]


def test_drift_of_the_master_table_between_two_runs(small: SmallPipeline) -> None:
    small.arrive("1.json", [sale(1, 1)])
    small.run()
    before = small.table().schema
    small.build(PRODUCTS.append_column("colour", pa.array(["blue", "black", "gold"])))
    small.arrive("2.json", [sale(2, 2)])
    small.run()
    assert small.table().schema == before, "an added column is ignored"
    assert [row["name"] for row in small.written()] == ["pen", "ink"]

    small.build(PRODUCTS.drop_columns("price"))
    small.arrive("3.json", [sale(3, 3)])
    with pytest.raises(SchemaDriftError, match="'price'"):
        small.run()
    retyped = PRODUCTS.set_column(2, "price", pa.array(["1", "2", "3"]))
    small.build(retyped)
    with pytest.raises(SchemaDriftError, match="string and no longer int32 in the column 'price'"):
        small.run()
    assert len(small.written()) == 2, "nothing was written"

    small.build()
    small.run()
    assert [row["name"] for row in small.written()] == ["pen", "ink", "nib"], "brought back, it goes on"


def test_a_column_that_is_lost_while_the_query_runs_stops_it_before_any_write(small: SmallPipeline) -> None:
    small.parts["trigger"] = ""
    small.arrive("1.json", [sale(1, 1)])

    def lose_a_column(batch: BatchProgress) -> None:
        if batch.batch_id == 0:
            small.build(PRODUCTS.drop_columns("price"))
            small.arrive("2.json", [sale(2, 2)])

    with pytest.raises(SchemaDriftError, match="'price'"):
        small.run(lose_a_column)
    assert [row["sale_id"] for row in small.written()] == [1]


def test_a_poison_record_stops_the_query_with_its_file_and_without_its_payload(
    small: SmallPipeline, capfd: pytest.CaptureFixture[str]
) -> None:
    small.parts["transform"] = '[[transform]]\ndrop = ["quantity"]'
    small.arrive("1.json", [sale(1, 1)])
    small.run()
    small.arrive("2.json", [sale(2, 2), {**sale(3, 3), "quantity": SECRET}])
    with pytest.raises(PoisonRecordError) as caught:
        small.run()
    said = str(caught.value)
    assert "2.json" in said
    assert "dead_letters" in said
    assert SECRET not in said
    assert SECRET not in "".join(capfd.readouterr())
    assert [row["sale_id"] for row in small.written()] == [1]

    # The same files with dead letters: sound rows go on, and each record that is not is put aside once.
    small.parts["source"] += '\ndead_letters = "letters"'
    small.arrive("3.json", [sale(4, 1), f"not json {SECRET}", sale(5, 2)])
    small.run()
    small.run()
    assert [row["sale_id"] for row in small.written()] == [1, 2, 4, 5]
    files = sorted((small.folder / "letters").glob("batch=*/part-*.json"))
    letters = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    reported = [(Path(letter["file"]).name, letter["record_number"], letter["reason"]) for letter in letters]
    assert reported == [
        ("2.json", 2, "a value does not have the type of its column"),
        ("3.json", 2, "the record is not JSON"),
    ]
    assert all(SECRET in letter["record"] for letter in letters)
    assert SECRET not in "".join(capfd.readouterr())


def test_csv_with_columns_in_another_order_stops_and_never_mixes_them_up(small: SmallPipeline) -> None:
    small.parts["source"] = small.parts["source"].replace("json", "csv") + "\noptions = {header = true}"
    (small.incoming / "1.csv").write_text("sale_id,product_id,quantity\n1,2,5\n")
    small.run()
    (small.incoming / "2.csv").write_text("product_id,sale_id,quantity\n2,2,5\n")
    with pytest.raises(SemistreamError):
        small.run()
    assert [row["sale_id"] for row in small.written()] == [1]


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ('set = {x = "(SELECT 1)"}', "has a query in it"),
        ('set = {x = "quantity IN (SELECT 1)"}', "has a query in it"),
        ('filter = "EXISTS (SELECT * FROM csv.`/etc/passwd`)"', "has a query in it"),
        ('filter = "true; DROP TABLE sales"', "is not one SQL expression"),
        ('filter = "true UNION SELECT 1"', "is not one SQL expression"),
        ("set = {x = \"reflect('java.lang.System', 'getenv', 'HOME')\"}", "can run arbitrary code"),
        ("set = {x = \"upper(java_method('java.util.UUID', 'randomUUID'))\"}", "can run arbitrary code"),
        ('set = {x = "sum(quantity)"}', "number 1: aggregates rows"),
        ('set = {x = "nothing + 1"}', "nothing"),
        ('filter = "quantity + 1"', "number 1"),
        ('set = {x = "row_number() OVER (PARTITION BY product_id ORDER BY sale_id)"}', "cannot be applied to a stream"),
        ('drop = ["quantiy"]', "did you mean 'quantity'?"),
        ('select = ["`quantity` FROM x"]', "not a column name"),
        ('rename = {quantity = "name"}', "two columns 'name'"),
        ('drop_duplicates = {on = ["sale_id"], within = "1 hour", time = "quantity"}', "TIMESTAMP"),
    ],
)
def test_hostile_and_wrong_steps_are_refused_before_the_start(
    spark: SparkSession, small: SmallPipeline, step: str, says: str
) -> None:
    small.parts["transform"] = f"[[transform]]\n{step}"
    with pytest.raises(SemistreamError) as caught:
        plan_pipeline(spark, small.description)
    assert says in str(caught.value)
    assert "[[transform]]" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_column_with_a_name_of_ours_is_refused_before_the_start(spark: SparkSession, small: SmallPipeline) -> None:
    small.parts["transform"] = '[[transform]]\nset = { _Semistream_number = "1" }'
    with pytest.raises(SemistreamError, match="_Semistream_number"):
        plan_pipeline(spark, small.description)


def test_a_second_query_on_a_checkpoint_and_a_lost_checkpoint_are_refused(small: SmallPipeline) -> None:
    with CheckpointLock(small.folder / "state"), pytest.raises(CheckpointInUseError, match="Another query uses"):
        small.run()
    small.arrive("1.json", [sale(1, 1)])
    small.run()
    (small.folder / "state").rename(small.folder / "lost")
    with pytest.raises(InvalidSettingError, match="restore that checkpoint"):
        small.run()


def test_a_java_process_that_outlives_its_driver_keeps_the_checkpoint(
    small: SmallPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.arrive("1.json", [sale(1, 1)])
    small.run()
    small.arrive("2.json", [sale(2, 2)])
    monkeypatch.setattr(spark_session, "_SECONDS_FOR_AN_OLD_JAVA", 0.3)
    with (small.folder / "state" / ".semistream.java.lock").open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)  # what Java takes, too
        with pytest.raises(CheckpointInUseError, match="Java process of an earlier query"):
            small.run()
    small.run()
    assert [row["sale_id"] for row in small.written()] == [1, 2]


def test_a_wrong_schema_and_a_missing_folder_are_named(spark: SparkSession, small: SmallPipeline) -> None:
    source = small.parts["source"]
    small.parts["source"] = source.replace("BIGINT", "BIGINTEGER")
    with pytest.raises(InvalidSettingError, match=r"\[source\] schema"):
        plan_pipeline(spark, small.description)
    small.parts["source"] = source.replace('"incoming"', '"nowhere"')
    with pytest.raises(InvalidSettingError, match=r"\[source\].*nowhere"):
        plan_pipeline(spark, small.description)
    small.parts |= {"source": source, "sink": 'format = "parquet"\npath = "w"\npartition_by = ["nam"]'}
    with pytest.raises(UnknownColumnError, match=r"\[sink\] partition_by names 'nam'"):
        plan_pipeline(spark, small.description)
