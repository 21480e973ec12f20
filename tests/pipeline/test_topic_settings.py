"""What a file says about topics is read or refused before Spark is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kafka_pipelines import AVRO_SCHEMA

from semistream.core.errors import InvalidSettingError
from semistream.pipeline import PipelineDescription, read_description
from semistream.pipeline.jars import formats_of
from semistream.pipeline.sources.kinds import kind_of

SOUND = """
[pipeline]
name = "topics"
checkpoint = "state"
[source]
format = "kafka"
servers = "host:9092, other:9093"
topic = "orders"
schema = "order_id BIGINT NOT NULL, total DECIMAL(10, 2)"
[[dimension]]
table = "products"
on = "order_id"
[sink]
format = "noop"
"""
AVRO = json.dumps(AVRO_SCHEMA)


def described(folder: Path, *changes: tuple[str, str]) -> PipelineDescription:
    """Return what the file says after some changes."""
    text = SOUND
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = folder / "pipeline.toml"
    file.write_text(text)
    return read_description(file)


def test_a_short_table_gets_good_defaults(tmp_path: Path) -> None:
    (source,) = described(tmp_path).sources
    topic = source.topic
    assert topic is not None
    assert (topic.servers, topic.topics, topic.value) == ("host:9092,other:9093", ("orders",), "json")
    assert (topic.start, topic.skips_expired, topic.max_rows_per_trigger) == ("earliest", False, None)
    assert source.options == {"kafka.isolation.level": "read_committed"}, "aborted transactions are not read"
    assert kind_of("kafka").columns(source) == ("order_id", "total")
    assert formats_of(described(tmp_path)) >= {"kafka"}


def test_columns_come_from_the_value_the_message_and_its_headers(tmp_path: Path) -> None:
    more = 'message = { key = "k", timestamp = "sent_at" }\nheaders = { trace = "trace-id" }\nvalue = "avro"\n'
    description = described(tmp_path, ("schema = ", f"{more}schema = '{AVRO}'\n#"))
    names = ("sale_id", "product_id", "quantity", "note", "sold_at", "k", "sent_at", "trace")
    assert kind_of("kafka").columns(description.sources[0]) == names
    assert formats_of(description) >= {"kafka", "avro"}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"host:9092, other:9093"', '"host"', "servers must name brokers with their ports"),
        ('"host:9092, other:9093"', '"host:9092/../x"', "servers must name brokers with their ports"),
        ('"orders"', '"../orders"', "topic has '../orders', which is no topic"),
        ('"orders"', '".."', "topic has '..', which is no topic"),
        ('"orders"', '"a,b"', "topic has 'a,b', which is no topic"),
        ('"orders"', '"x; DROP TABLE y"', "which is no topic"),
        ('"orders"', '["a", "a"]', "topic must be the name of a topic, or a list of different ones"),
        ('"orders"', "[]", "topic must be the name of a topic"),
        ("topic =", "topics =", "topics is not a key of this table: did you mean 'topic'?"),
        ("topic =", 'path = "x"\ntopic =', "path does not apply to the format 'kafka'"),
        ("schema =", "#", "schema is missing"),
        ("BIGINT", "BIGNT", "'BIGNT' is not a type, did you mean 'bigint'?"),
        ("schema =", 'value = "text"\nschema =', "schema does not apply to value = 'text'"),
        ("schema =", 'value = "avro"\nschema =', "schema is not JSON, as an Avro schema must be"),
        ("schema =", f"value = \"confluent_avro\"\nschema = '{AVRO}'\n#", "schema_ids is missing"),
        ("schema =", "schema_ids = [1]\nschema =", "schema_ids is for value = 'confluent_avro' only"),
        ("schema =", 'value = "avro"\nschema = \'{"type": "string"}\'\n#', "must be an Avro record"),
        ("schema =", 'value = "avro"\nschema = {file = "no.avsc"}\n#', "schema file is"),
        ("schema =", 'value = "jsom"\nschema =', "value cannot be 'jsom': did you mean 'json'?"),
        ("schema =", 'start = "first"\nschema =', "start cannot be 'first'"),
        ("schema =", 'expired = "ignore"\nschema =', "expired cannot be 'ignore'"),
        ("schema =", 'message = {offsets = "o"}\nschema =', "is not a part of a message: did you mean 'offset'?"),
        ("schema =", 'message = {offset = "a b"}\nschema =', "message makes a column 'a b'"),
        ("schema =", 'message = {offset = "total"}\nschema =', "both make a column 'total'"),
        ("schema =", 'options = {subscribe = "x"}\nschema =', "options.subscribe is not taken: give topic in [source]"),
        ("schema =", "options = {failOnDataLoss = false}\nschema =", "is not taken: give expired in [source]"),
        ("schema =", "options = {minPartition = 2}\nschema =", "did you mean 'minPartitions'?"),
        ("schema =", 'options = {"kafka.ssl.key.password" = "hunter2"}\nschema =', "environment variable"),
        ("schema =", 'options = {"kafka.sasl.jaas.config" = "x password=hunter2;"}\nschema =', "environment variable"),
        ("schema =", 'dead_letters = {topic = "orders"}\nschema =', "dead_letters is a topic that is read"),
        ("schema =", 'dead_letters = {topic = "a/b"}\nschema =', "which is no topic"),
        ("schema =", 'dead_letters = "../letters"\nschema =', "'..'"),
        ("schema =", 'dead_letters = {topic = "d"}\ncorrupt = "stop"\nschema =', "contradicts corrupt = 'stop'"),
        ("schema =", "max_rows_per_trigger = 0\nschema =", "must be a whole number of at least 1"),
        ("schema =", f"max_rows_per_trigger = {2**31}\nschema =", "must be a whole number of at most 2147483647"),
    ],
)
def test_what_is_wrong_is_refused_with_its_key(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(InvalidSettingError) as refused:
        described(tmp_path, (old, new))
    assert says in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_no_message_comes_back_as_input(tmp_path: Path) -> None:
    written, sink = SOUND[SOUND.index("[sink]") :], '[sink]\nformat = "kafka"\nservers = "{}"\ntopic = "{}"\n'
    with pytest.raises(InvalidSettingError, match=r"^\[sink\] topic is a topic that is read"):
        described(tmp_path, (written, sink.format("c:1,Other:9093", "orders")))
    for servers, topic in (("elsewhere:9092", "orders"), ("host:9092", "others")):
        described(tmp_path, (written, sink.format(servers, topic)))
    letters = '[[source]]\nformat = "kafka"\nservers = "host:9092"\ntopic = "more"\nschema = "a INT"\n'
    letters += 'dead_letters = {topic = "orders"}\n[[dimension]]'
    with pytest.raises(InvalidSettingError, match="number 2: dead_letters is a topic that is read"):
        described(tmp_path, ("[source]", "[[source]]"), ("[[dimension]]", letters))


def test_any_other_format_is_passed_on_with_its_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_TEST", "hunter2")
    begin, end = SOUND.index("[source]"), SOUND.index("[[dimension]]")
    options = 'options = { region.name = "eu", "api.key" = { env = "KEY_OF_TEST" } }'
    table = f'[source]\nformat = "com.example.Queue"\n{options}\n'
    description = described(tmp_path, (SOUND[begin:end], table))
    (source,) = description.sources
    assert source.options == {"region.name": "eu", "api.key": "hunter2"}
    assert "hunter2" not in repr(description)
    for change, says in (
        ('"com.example.Queue"', '"parket"'),
        ("region.name", "cleanSource"),
        ('{ env = "KEY_OF_TEST" }', '"hunter2"'),
        ('"com.example.Queue"', '"../x"'),
    ):
        with pytest.raises(InvalidSettingError) as refused:
            described(tmp_path, (SOUND[begin:end], table.replace(change, says)))
        assert "hunter2" not in str(refused.value)
