"""Delta tables and topics of Kafka as sinks; run by test_lake_sinks.py in a process with a session of its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so
from sink_contract import SCHEMA, BatchSinkContract, arrive, batch_of, build_products, pipeline_file

from semistream.core.errors import InvalidSettingError, NameClashError, SchemaDriftError, UnknownColumnError
from semistream.pipeline import jars, secrets
from semistream.pipeline.running import run_pipeline
from semistream.pipeline.sinks import Guarantee, sink_of
from semistream.pipeline.sinks.contract import Batch
from semistream.pipeline.sinks.kafka import Topic
from semistream.spark.spark_session import make_session
from servers.kafka import KafkaBroker

CANARY = "canary-of-a-topic"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Return a session with the jars of all formats, as a pipeline gets it."""
    settings = jars.settings_with_jars({"delta", "kafka", "avro"}, {})
    settings |= {
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.redaction.regex": secrets.REDACTION,
        "spark.driver.memory": "1g",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    session = make_session("lake", "local[2]", settings)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    """Return a broker for all tests."""
    broker = KafkaBroker()
    broker.start()
    yield broker
    broker.stop()


class TestDelta(BatchSinkContract):
    """Delta keeps the contract."""

    def described(self, folder: Path, table: str, *, upsert: bool = False, order: bool = True) -> str:  # noqa: ARG002
        mode = 'mode = "upsert"\nkey = ["sale_id"]\n' if upsert else ""
        return f'format = "delta"\npath = "lake/{table}"\n{mode}' + (
            'order_by = "version"\n' if upsert and order else ""
        )

    def held(self, spark: SparkSession, folder: Path, table: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in spark.read.format("delta").load(str(folder / "lake" / table)).collect()]

    def remove(self, folder: Path, table: str) -> None:
        shutil.rmtree(folder / "lake" / table)

    def test_names_and_columns_that_do_not_fit_are_told(self, spark: SparkSession, tmp_path: Path) -> None:
        sink = self.sink(tmp_path, "changed", upsert=True)
        odd = spark.sql("SELECT 1L AS sale_id, 1 AS version, 2 AS `a.b`, 3 AS `select`")
        sink.check(odd)
        sink.write(odd, batch_of(tmp_path, 0))
        with pytest.raises(InvalidSettingError, match=r"cannot have the column 'a b'.*rename it"):
            self.sink(tmp_path, "spaced").check(spark.sql("SELECT 1L AS sale_id, 1 AS `a b`"))
        shutil.rmtree(tmp_path / "lake" / "changed")
        self.sink(tmp_path, "changed", upsert=True).write(odd.drop("select"), batch_of(tmp_path, 0))
        with pytest.raises(SchemaDriftError, match="has no column 'select'"):
            sink.write(odd, batch_of(tmp_path, 1))

    def test_an_upsert_in_a_pipeline_is_written_once(self, spark: SparkSession, tmp_path: Path) -> None:
        build_products(tmp_path)
        arrive(tmp_path, "0.json", [(1, 1, 1), (1, 2, 2)])
        sink = self.described(tmp_path, "merged", upsert=True) + 'partition_by = ["price"]\n'
        totals = run_pipeline(pipeline_file(tmp_path, sink), spark=spark)
        assert (totals.rows_in, totals.rows_out) == (2, 2), "rows are joined once, although MERGE reads them twice"
        (tmp_path / "state" / "commits" / "0").unlink()
        (tmp_path / "state" / "commits" / ".0.crc").unlink(missing_ok=True)
        run_pipeline(pipeline_file(tmp_path, sink), spark=spark)
        assert [(row["sale_id"], row["price"]) for row in self.held(spark, tmp_path, "merged")] == [(1, 20)]


class TestTopic:
    """Kafka is written at least once, and says so."""

    def _sink(self, folder: Path, broker: KafkaBroker, topic: str, more: str = "") -> Topic:
        sink = f'format = "kafka"\nservers = "{broker.servers}"\ntopic = "{topic}"\n{more}'
        made = sink_of(pipeline_file(folder, sink))
        assert isinstance(made, Topic)
        return made

    def _messages(self, spark: SparkSession, broker: KafkaBroker, topic: str) -> DataFrame:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.servers)
        return reader.option("subscribe", topic).option("includeHeaders", "true").load()

    def test_a_repeated_batch_has_the_ids_of_the_first(
        self, spark: SparkSession, tmp_path: Path, broker: KafkaBroker
    ) -> None:
        sink = self._sink(tmp_path, broker, "repeated", 'key = "product_id"\nheaders = { v = "version" }\n')
        assert sink.guarantee is Guarantee.AT_LEAST_ONCE
        rows = spark.createDataFrame([(1, 1, 1), (2, 1, None), (2, 1, None)], SCHEMA)
        sink.check(rows)
        sink.write(rows, Batch("sales", "q1", 0, "state"))
        sink.write(rows.repartition(3), Batch("sales", "q1", 0, "state"))
        found = self._messages(spark, broker, "repeated").collect()
        values = [json.loads(row.value) for row in found]
        assert len(values) == 6
        assert len({value["semistream_id"] for value in values}) == 3, "equal rows have ids of their own"
        once = {value["semistream_id"]: value for value in values}.values()
        assert sorted((value["sale_id"], value["version"]) for value in once if value["version"]) == [(1, 1)]
        assert {row.key for row in found} == {b"1"}
        assert {header.value for row in found for header in row.headers} == {b"1", None}
        sink.write(rows, Batch("sales", "q1", 1, "state"))
        assert (
            len({json.loads(row.value)["semistream_id"] for row in self._messages(spark, broker, "repeated").collect()})
            == 6
        )

    def test_keys_and_headers_are_the_same_bytes_in_any_zone(
        self, spark: SparkSession, tmp_path: Path, broker: KafkaBroker
    ) -> None:
        sink = self._sink(tmp_path, broker, "zones", 'key = "at"\nheaders = { at = "at", raw = "raw", no = "no" }\n')
        rows = spark.sql("SELECT timestamp'2026-03-29 01:30:00.000001Z' AS at, X'00ff' AS raw, CAST(NULL AS INT) AS no")
        before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
        try:
            for number, zone in enumerate(("UTC", "Asia/Tokyo")):
                spark.conf.set("spark.sql.session.timeZone", zone)
                sink.write(rows, Batch("sales", "q1", number, "state"))
        finally:
            spark.conf.set("spark.sql.session.timeZone", before)
        moment = b"2026-03-29T01:30:00.000001Z"
        for message in broker.messages("zones"):
            assert message.key == moment
            assert dict(message.headers) == {"at": moment, "raw": b"\x00\xff", "no": None}

    def test_values_may_be_avro(self, spark: SparkSession, tmp_path: Path, broker: KafkaBroker) -> None:
        from pyspark.sql.avro.functions import from_avro

        more = 'value = "avro"\nid = "message_id"\nkey = ["sale_id", "product_id"]\n'
        sink = self._sink(tmp_path, broker, "avro", more)
        rows = spark.sql("SELECT 1L AS sale_id, 2L AS product_id, timestamp'2026-01-02 03:04:05.678901Z' AS sold")
        sink.check(rows)
        sink.write(rows, Batch("sales", "q1", 0, "state"))
        schema = json.dumps(
            {
                "type": "record",
                "name": "topLevelRecord",
                "fields": [
                    {"name": "message_id", "type": ["string", "null"]},
                    {"name": "sale_id", "type": "long"},
                    {"name": "product_id", "type": "long"},
                    {"name": "sold", "type": {"type": "long", "logicalType": "timestamp-micros"}},
                ],
            }
        )
        (row,) = (
            self._messages(spark, broker, "avro")
            .select("key", from_avro("value", schema).alias("v"))
            .select("key", "v.*", F.col("v.sold").cast("string").alias("text"))
            .collect()
        )
        assert json.loads(row.key) == {"sale_id": 1, "product_id": 2}
        assert (row.sale_id, row.text, len(row.message_id)) == (1, "2026-01-02 03:04:05.678901", 32)

    def test_a_pipeline_into_a_topic_keeps_its_secrets(
        self,
        spark: SparkSession,
        tmp_path: Path,
        broker: KafkaBroker,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setenv("TOPIC_SECRET", CANARY)
        build_products(tmp_path)
        arrive(tmp_path, "0.json", [(1, 1, 1), (2, 3, 1)])
        option = 'options = { "kafka.ssl.key.password" = { env = "TOPIC_SECRET" } }\n'
        sink = f'format = "kafka"\nservers = "{broker.servers}"\ntopic = "sales"\n{option}'
        description = pipeline_file(tmp_path, sink)
        assert description.sink.options == {"kafka.ssl.key.password": CANARY}
        run_pipeline(description, spark=spark)
        values = [json.loads(row.value) for row in self._messages(spark, broker, "sales").collect()]
        assert sorted((value["sale_id"], value["price"]) for value in values) == [(1, 10), (2, 30)]
        said = f"{description!r} {capfd.readouterr()}"
        assert CANARY not in said
        files = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert all(CANARY.encode() not in file.read_bytes() for file in files)

    def test_columns_that_clash_or_are_not_there_are_named(
        self, spark: SparkSession, tmp_path: Path, broker: KafkaBroker
    ) -> None:
        rows = spark.createDataFrame([(1, 1, 1)], SCHEMA)
        with pytest.raises(NameClashError, match="'version'"):
            self._sink(tmp_path, broker, "t", 'id = "version"').check(rows)
        with pytest.raises(UnknownColumnError, match="headers names 'colour'"):
            self._sink(tmp_path, broker, "t", 'headers = { c = "colour" }').check(rows)


def test_any_format_of_spark_is_a_sink(spark: SparkSession, tmp_path: Path) -> None:
    build_products(tmp_path)
    arrive(tmp_path, "0.json", [(1, 1, 1)])
    sink = 'format = "csv"\npath = "out"\noptions = { header = true, sep = ";" }\n'
    run_pipeline(pipeline_file(tmp_path, sink), spark=spark)
    texts = [file.read_text() for file in (tmp_path / "out").glob("part-*.csv")]
    assert "sale_id;product_id;version;price\n1;1;1;10\n" in texts
    rows = spark.createDataFrame([(1, 1, 1)], SCHEMA)
    memory = sink_of(pipeline_file(tmp_path, 'format = "memory"', name="held"))
    memory.check(rows)
    for name, sentence in (("nosuchformat", "Spark does not know"), ("jdbc", "cannot write streams")):
        with pytest.raises(InvalidSettingError, match=sentence):
            sink_of(pipeline_file(tmp_path, f'format = "{name}"')).check(rows)


def test_a_plan_does_not_show_the_secrets_of_options(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPIC_SECRET", CANARY)
    options = 'options = { "a.sasl.jaas.config" = { env = "TOPIC_SECRET" }, numRows = 3 }'
    sink = sink_of(pipeline_file(tmp_path, f'format = "console"\n{options}'))
    arrive(tmp_path, "0.json", [(1, 1, 1)])
    stream = spark.readStream.schema(SCHEMA).json(str(tmp_path / "incoming"))
    sink.check(stream)
    query = sink.writer(stream).start()
    query.awaitTermination(120)
    shown = f"{query._jsq.explainInternal(True)} {query.lastProgress} {query.status} {sink.told}"
    assert "console" in shown.lower()
    assert CANARY not in shown
