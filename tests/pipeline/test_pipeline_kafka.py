"""Pipelines that read Kafka, against a real broker."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from kafka_pipelines import AVRO_SCHEMA, TopicPipeline, avro_sale
from pipeline_runs import SCHEMA, sale
from pyspark.sql import SparkSession

from semistream.core.errors import InvalidSettingError
from semistream.pipeline.checked_start import check_sources
from semistream.pipeline.failures import ExpiredOffsetsError, PipelineFailedError, PoisonRecordError
from semistream.pipeline.planning import plan_pipeline
from servers.kafka import PASSWORD, USER, KafkaBroker

SECRET = "payload-4711"
NOON = 1_767_268_800_000  # 2026-01-01 12:00 UTC in milliseconds


@pytest.fixture
def session_zone(spark: SparkSession) -> Iterator[None]:
    """Put the session's zone back after the test."""
    before = spark.conf.get("spark.sql.session.timeZone")
    yield
    assert before is not None
    spark.conf.set("spark.sql.session.timeZone", before)


def test_json_values_join_and_the_rest_of_a_message_becomes_columns(
    spark: SparkSession, tmp_path: Path, kafka: KafkaBroker
) -> None:
    settings = f"""schema = "{SCHEMA}"
message = {{ key = "shop", timestamp = "sent_at", partition = "part", offset = "place", headers = "all_headers" }}
headers = {{ trace = "trace-id", lost = "nothing" }}
"""
    small = TopicPipeline(spark, tmp_path / "small", kafka, settings)
    headers = [("trace-id", b"first"), ("other", b"\xff"), ("trace-id", b"t\xc3\xa9")]
    kafka.send(
        small.topic,
        [(b"shop 1", json.dumps({**sale(1, 1), "unknown": [1]}).encode(), headers)],
        partition=1,
        at_ms=NOON,
    )
    small.send(sale(2, 99), '{"sale_id": 3, "product_id": 2}  ')
    small.run()
    first, second, third = small.written()
    assert (first["name"], second["name"], third["name"], third["quantity"]) == ("pen", None, "ink", None)
    assert (first["shop"], first["part"], first["place"]) == ("shop 1", 1, 0)
    assert first["sent_at"] == datetime(2026, 1, 1, 12), "Parquet has moments without their zone, which is UTC"
    assert (first["trace"], first["lost"], second["trace"]) == ("té", None, None)
    assert first["all_headers"] == [{"key": name, "value": value} for name, value in headers]
    assert [row["place"] for row in (second, third)] == [0, 1]
    small.send(sale(4, 3))
    assert small.run().rows_in == 1, "a second run reads only what is new"


def test_avro_values_are_read_by_the_schema_of_the_file(
    spark: SparkSession, tmp_path: Path, kafka: KafkaBroker
) -> None:
    small = TopicPipeline(spark, tmp_path / "small", kafka, f"value = \"avro\"\nschema = '{json.dumps(AVRO_SCHEMA)}'")
    micros = NOON * 1000 + 1
    small.send(avro_sale(1, 2, 5, "größer", micros), avro_sale(-2, None, -7, "", -1))
    small.run()
    unknown, found = small.written()
    assert found == {
        "sale_id": 1,
        "product_id": 2,
        "quantity": 5,
        "note": "größer",
        "name": "ink",
        "price": 900,
        "sold_at": datetime(2026, 1, 1, 12, 0, 0, 1),
    }
    assert (unknown["sale_id"], unknown["product_id"], unknown["name"]) == (-2, None, None)
    small.send(avro_sale(3, 1, 1, "x", 0)[:-1])
    with pytest.raises(PoisonRecordError, match="the value is not Avro of the schema"):
        small.run()


def test_avro_of_a_registry_must_have_a_known_schema(spark: SparkSession, tmp_path: Path, kafka: KafkaBroker) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "sale.avsc").write_text(json.dumps(AVRO_SCHEMA))
    settings = (
        'value = "confluent_avro"\nschema = { file = "sale.avsc" }\nschema_ids = [17, 258]\ndead_letters = "letters"'
    )
    small = TopicPipeline(spark, tmp_path / "small" / "made", kafka, settings.replace("sale.avsc", "../sale.avsc"))
    record = avro_sale(1, 2, 5, "x", 0)
    small.send(
        b"\0\0\0\0\x11" + record,
        b"\0\0\0\x01\x02" + record,
        b"\0\0\0\0\x12" + record,
        b"\x01\0\0\0\x11" + record,
        record,
    )
    small.run()
    assert [row["sale_id"] for row in small.written()] == [1, 1]
    assert [letter["reason"] for letter in _letters(small)] == ["the value is not of one of schema_ids"] * 3


POISON: list[tuple[bytes | str | None, str]] = [
    (f'{{"sale_id": "{SECRET}"}}', "a value does not have the type of its column"),
    ('{"sale_id": 1.5}', "a value does not have the type of its column"),
    (SECRET, "the value is not one JSON object"),
    ("[]", "the value is not one JSON object"),
    ('[{"sale_id": 1}]', "the value is not one JSON object"),
    ('{"sale_id": 1}{"sale_id": 2}', "the value is not one JSON object"),
    ('{"sale_id": 1},"more":{"sale_id": 2}', "the value is not one JSON object"),
    ('{"sale_id": 1},"_semistream_value":{"sale_id": 2}', "the value is not one JSON object"),
    ('{"sale_id": 1, "deep": ' + "[" * 2000 + "]" * 2000 + "}", "the value is not one JSON object"),
    ('{"sale_id": 1, "long": ' + "9" * 5000 + "}", "the value is not one JSON object"),
    (b"\xef\xbb\xbf" + b'{"sale_id": 1}', "the value is not one JSON object"),
    ('{"sale_id": 1}}', "the value is not one JSON object"),
    ('{"sale_id": 1', "the value is not one JSON object"),
    ("", "the value is not one JSON object"),
    ("null", "the value is not one JSON object"),
    (b'{"sale_id": 1, "note": "\xff"}', "the value is not UTF-8"),
    (None, "it has no value"),
    ('{"product_id": 1}', "the column 'sale_id' is missing or null"),
    ('{"sale_id": null}', "the column 'sale_id' is missing or null"),
]
_REQUIRED = 'schema = "sale_id BIGINT NOT NULL, product_id BIGINT"\n'


def test_every_kind_of_poison_goes_to_the_dead_letters_with_position_and_reason(
    spark: SparkSession, tmp_path: Path, kafka: KafkaBroker
) -> None:
    small = TopicPipeline(spark, tmp_path / "small", kafka, _REQUIRED + 'dead_letters = "letters"')
    large = {**sale(2, 2), "unknown": {"note": "x" * 300_000, "deep": {}}, "more": [{}, {}]}
    small.send(sale(1, 1), *(value for value, _ in POISON), large)
    totals = small.run()
    assert [row["sale_id"] for row in small.written()] == [1, 2]
    assert totals.rows_out == 2
    letters = sorted(_letters(small), key=lambda letter: letter["offset"])
    assert [letter["reason"] for letter in letters] == [reason for _, reason in POISON]
    for place, (letter, (value, _)) in enumerate(zip(letters, POISON, strict=True), start=1):
        assert (letter["topic"], letter["partition"], letter["offset"]) == (small.topic, 0, place)
        sent = value.encode() if isinstance(value, str) else value
        assert (base64.b64decode(letter["value"]) if "value" in letter else None) == sent
    small.send(sale(3, 1), "poison")
    small.run()
    assert len(_letters(small)) == len(POISON) + 1, "a second run adds what is new"


def test_poison_stops_the_pipeline_with_its_position_and_without_its_payload(
    spark: SparkSession, tmp_path: Path, kafka: KafkaBroker, capfd: pytest.CaptureFixture[str]
) -> None:
    small = TopicPipeline(spark, tmp_path / "small", kafka)
    small.send(sale(1, 1))
    small.run()
    small.send(sale(2, 1), f'{{"sale_id": "{SECRET}"}}', partition=1)
    with pytest.raises(PoisonRecordError) as stopped:
        small.run()
    assert str(stopped.value) == (
        f"The message at offset 1 in partition 1 of the topic {small.topic} does not fit [source] (a value does not "
        f"have the type of its column): mend the producer and skip the message, or set dead_letters there to put such "
        f"messages aside."
    )
    assert [row["sale_id"] for row in small.written()] == [1], "nothing of the micro-batch was written"
    assert SECRET not in "".join(capfd.readouterr())
    small.parts["source"] += '\ndead_letters = "letters"'
    small.run()
    assert [row["sale_id"] for row in small.written()] == [1, 2]


def test_dead_letters_may_go_to_a_topic_as_they_were(spark: SparkSession, tmp_path: Path, kafka: KafkaBroker) -> None:
    small = TopicPipeline(spark, tmp_path / "small", kafka)
    small.parts["source"] += f'\ndead_letters = {{ topic = "{small.topic}-dead" }}'
    headers = [("trace-id", b"7")]
    kafka.send(small.topic, [(b"key", b"not json \xff", headers), (b"gone", None, ())], partition=1)
    small.send(sale(1, 1))
    small.run()
    assert [row["sale_id"] for row in small.written()] == [1]
    letters = kafka.messages(f"{small.topic}-dead")
    told = {letter.key: dict(letter.headers) for letter in letters}
    assert {(letter.key, letter.value) for letter in letters} == {(b"key", b"not json \xff"), (b"gone", None)}
    position = {"semistream.topic": small.topic.encode(), "semistream.partition": b"1"}
    assert told[b"key"] == {
        **position,
        "trace-id": b"7",
        "semistream.offset": b"0",
        "semistream.reason": b"the value is not UTF-8",
    }
    assert told[b"gone"] == {**position, "semistream.offset": b"1", "semistream.reason": b"it has no value"}


def test_expired_offsets_stop_the_pipeline_unless_they_are_to_be_skipped(
    spark: SparkSession, tmp_path: Path, kafka: KafkaBroker
) -> None:
    small = TopicPipeline(spark, tmp_path / "small", kafka)
    small.send(sale(1, 1), sale(2, 1))
    small.run()
    small.send(sale(3, 1), sale(4, 1), sale(5, 1))
    kafka.expire(small.topic, {0: 4})
    with pytest.raises(ExpiredOffsetsError) as stopped:
        small.run()
    assert str(stopped.value).endswith(
        "set expired = 'skip' in [source] to go on with the messages that are left, or start afresh with another "
        "checkpoint and another path in [sink]."
    )
    assert [row["sale_id"] for row in small.written()] == [1, 2]
    small.parts["source"] += '\nexpired = "skip"'
    small.run()
    assert [row["sale_id"] for row in small.written()] == [1, 2, 5]


def test_a_topic_that_was_made_anew_stops_the_pipeline(spark: SparkSession, tmp_path: Path, kafka: KafkaBroker) -> None:
    small = TopicPipeline(spark, tmp_path / "small", kafka)
    small.send(sale(1, 1), sale(2, 1), sale(3, 1))
    small.run()
    kafka.remove(small.topic)
    kafka.create(small.topic)
    small.send(sale(4, 1))
    with pytest.raises(ExpiredOffsetsError, match=f"The topic {small.topic} was removed and made anew"):
        small.run()
    # Offsets alone would not tell: the new topic has reached those of the old one.
    small.send(*(sale(number, 1) for number in range(5, 9)))
    with pytest.raises(ExpiredOffsetsError, match="so that its first messages would be left out"):
        small.run()
    assert len(small.written()) == 3
    small.parts["source"] += '\nexpired = "skip"'
    small.run()
    assert [row["sale_id"] for row in small.written()] == [1, 2, 3, 7, 8]


def test_messages_with_more_columns_go_on_and_retyped_or_lost_ones_stop_before_any_write(
    spark: SparkSession, tmp_path: Path, kafka: KafkaBroker
) -> None:
    small = TopicPipeline(spark, tmp_path / "small", kafka, _REQUIRED + "max_rows_per_trigger = 10")
    small.send(sale(1, 1))
    small.run()
    small.send({**sale(2, 2), "colour": "red", "more": {"deep": [1]}})
    small.run()
    assert [set(row) for row in small.written()] == [{"sale_id", "product_id", "name", "price"}] * 2
    for drifted in ({"sale_id": "3", "product_id": 2}, {"product_id": 2}):
        small.send(sale(4, 1), drifted)
        with pytest.raises(PoisonRecordError, match="does not fit"):
            small.run()
        assert len(small.written()) == 2


@pytest.mark.usefixtures("session_zone")
def test_moments_are_the_same_in_any_zone_of_the_session(
    spark: SparkSession, tmp_path: Path, kafka: KafkaBroker
) -> None:
    settings = """schema = "sale_id BIGINT, product_id BIGINT, at TIMESTAMP, local TIMESTAMP_NTZ"
message = { timestamp = "sent_at" }
"""
    texts = [
        "2026-03-08T02:30:00",  # does not exist in New York
        "2026-03-08T02:30:00Z",
        "2026-11-01T01:30:00-04:00",  # the first of two half past ones in New York
        "2026-11-01T01:30:00-05:00",
        "2026-01-01T00:00:00.000001+05:30",
    ]
    found = []
    for number, zone in enumerate(("UTC", "America/New_York", "Asia/Kolkata")):
        spark.conf.set("spark.sql.session.timeZone", zone)
        small = TopicPipeline(spark, tmp_path / f"small{number}", kafka, settings)
        values = [json.dumps({**sale(place, 1), "at": text, "local": text[:19]}) for place, text in enumerate(texts)]
        kafka.send(small.topic, values, partition=0, at_ms=NOON)
        small.run()
        found.append(small.written())
    assert found[0] == found[1] == found[2]
    assert [row["at"].isoformat() for row in found[0]] == [
        *("2026-03-08T02:30:00", "2026-03-08T02:30:00", "2026-11-01T05:30:00"),
        *("2026-11-01T06:30:00", "2025-12-31T18:30:00.000001"),
    ]
    assert [row["local"] for row in found[0]] == [datetime.fromisoformat(text[:19]) for text in texts]
    assert {row["sent_at"] for row in found[0]} == {datetime(2026, 1, 1, 12)}


def test_several_topics_and_files_are_one_stream(spark: SparkSession, tmp_path: Path, kafka: KafkaBroker) -> None:
    small = TopicPipeline(spark, tmp_path / "small", kafka)
    other = f"{small.topic}-2"
    kafka.create(other, 1)
    topics = small.parts["source"].replace(f'"{small.topic}"', f'["{small.topic}", "{other}"]')
    files = f'format = "json"\npath = "incoming"\nschema = "{SCHEMA}"'
    small.parts["source"] = f"[[source]]\n{topics}\n[[source]]\n{files}\n"
    small.send(sale(1, 1))
    kafka.send(other, [json.dumps(sale(2, 2))])
    small.arrive("0.json", [sale(3, 3)])
    small.run()
    assert [(row["sale_id"], row["name"]) for row in small.written()] == [(1, "pen"), (2, "ink"), (3, "nib")]


def test_brokers_that_do_not_answer_are_told_before_spark_is_asked(
    spark: SparkSession, tmp_path: Path, kafka: KafkaBroker
) -> None:
    small = TopicPipeline(spark, tmp_path / "small", kafka)
    check_sources(small.description)
    small.parts["source"] = small.parts["source"].replace(kafka.servers, "127.0.0.1:1,127.0.0.1:2")
    with pytest.raises(InvalidSettingError, match=r"servers is 127\.0\.0\.1:1,127\.0\.0\.1:2, where no broker answers"):
        check_sources(small.description)


def test_an_avro_schema_that_spark_does_not_know_is_told_when_the_query_is_planned(
    spark: SparkSession, tmp_path: Path, kafka: KafkaBroker
) -> None:
    schema = json.dumps({"type": "record", "name": "a", "fields": [{"name": "product_id", "type": "lon"}]})
    small = TopicPipeline(spark, tmp_path / "small", kafka, f"value = \"avro\"\nschema = '{schema}'")
    with pytest.raises(InvalidSettingError, match=r"\[source\] schema is not one that Spark reads"):
        plan_pipeline(spark, small.description)


_CANARY = "canary-5d02e7"
_SASL = """options = { "kafka.security.protocol" = "SASL_PLAINTEXT", "kafka.sasl.mechanism" = "PLAIN", \
"kafka.sasl.jaas.config" = { env = "JAAS_OF_TEST" } }"""


def test_a_password_comes_from_the_environment_and_is_found_nowhere(
    spark: SparkSession,
    tmp_path: Path,
    kafka: KafkaBroker,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    small = TopicPipeline(spark, tmp_path / "small", kafka, f'schema = "{SCHEMA}"\n{_SASL}')
    small.send(sale(1, 1), "poison")
    source = small.parts["source"].replace(kafka.servers, f"127.0.0.1:{kafka.sasl_port}")
    small.parts["source"] = f'{source}\ndead_letters = {{ topic = "{small.topic}-dead" }}'
    kafka.create(f"{small.topic}-dead", 1)
    with pytest.raises(InvalidSettingError, match="needs the environment variable JAAS_OF_TEST"):
        small.run()
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    monkeypatch.setenv("JAAS_OF_TEST", f'{login} username="{USER}" password="{PASSWORD}";')
    small.run()
    assert [row["sale_id"] for row in small.written()] == [1]
    assert [letter.value for letter in kafka.messages(f"{small.topic}-dead")] == [b"poison"]
    planned = plan_pipeline(spark, small.description)
    told = [planned.rows._jdf.queryExecution().toString(), repr(small.description), "".join(capfd.readouterr())]
    monkeypatch.setenv("JAAS_OF_TEST", f'{login} username="{USER}" password="{_CANARY}";')
    small.send(sale(2, 1))
    with pytest.raises(PipelineFailedError) as refused:
        small.run()
    chain: BaseException | None = refused.value
    while chain is not None:
        told.append(str(chain))
        chain = chain.__cause__
    told.append("".join(capfd.readouterr()))
    told += [path.read_text(errors="replace") for path in small.folder.rglob("*") if path.is_file()]
    for secret in (PASSWORD, _CANARY):
        assert not [text for text in told if secret in text]


def _letters(small: TopicPipeline) -> list[dict[str, Any]]:
    files = sorted((small.folder / "letters").glob("batch=*/part-*.json"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]
