"""What [sink] may say, and what a checkpoint and a table must have in common; nothing here needs Spark to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from semistream.core.errors import InvalidSettingError
from semistream.pipeline import PipelineDescription, read_description
from semistream.pipeline.belonging import Belonging
from semistream.pipeline.description import DropColumns, RenameColumns, SelectColumns, SetColumns, Step
from semistream.pipeline.failures import CheckpointMismatchError
from semistream.pipeline.sinks.contract import WrittenBatches
from semistream.pipeline.sinks.upserts import columns_of_master
from semistream.pipeline.sinks.written_batches import compare
from semistream.spark.column_names import ColumnNames


def described(folder: Path, sink: str) -> PipelineDescription:
    file = folder / "p.toml"
    file.write_text(
        '[pipeline]\nname = "sales"\ncheckpoint = "state"\n[source]\nformat = "json"\npath = "in"\nschema = "k INT"\n'
        f'[[dimension]]\ntable = "products"\non = "k"\n[sink]\n{sink}\n'
    )
    return read_description(file)


@pytest.mark.parametrize(
    ("sink", "sentence"),
    [
        ('format = "parqet"', "did you mean 'parquet'?"),
        ('format = "mariadb"', "did you mean 'mysql'?"),
        ('format = "a b"', "no format of Spark is called"),
        ('format = "memory"\npath = "x"', "path does not apply to the format 'memory'"),
        ('format = "delta"', "path is missing"),
        ('format = "delta"\npath = "x"\nmode = "upsert"', "key is missing"),
        ('format = "delta"\npath = "x"\nkey = "k"', 'has no effect without mode = "upsert"'),
        ('format = "delta"\npath = "x"\nmode = "upsert"\nkey = "k"\norder_by = "k"', "is a column of the key"),
        ('format = "parquet"\npath = "x"\nmode = "upsert"', "mode does not apply"),
        ('format = "postgresql"', "table is missing"),
        ('format = "postgresql"\ntable = "mysql://h/d?table=t"', "but the format is 'postgresql'"),
        ('format = "postgresql"\ntable = "postgresql://h/d?table=t&key=k"', "give key in [sink]"),
        ('format = "postgresql"\ntable = "postgresql://h/d"', "must name its table"),
        ('format = "mysql"\ntable = "mysql://h/d?table=t"\noptions = { a = 1 }', "options does not apply"),
        ('format = "kafka"\nservers = "h:1"', "topic is missing"),
        ('format = "kafka"\nservers = "h:1"\ntopic = "a/b"', "topic cannot be 'a/b'"),
        ('format = "kafka"\nservers = "h:1"\ntopic = "t"\nvalue = "xml"', "value cannot be 'xml'"),
        ('format = "kafka"\nservers = "h:1"\ntopic = "t"\nschema = "{}"', "does not apply to values in json"),
        ('format = "kafka"\nservers = "h:1"\ntopic = "t"\nvalue = "avro"\nschema = "{}"', "is not a record of Avro"),
        ('format = "kafka"\nservers = "h:1"\ntopic = "t"\nid = "a b"', "makes a column 'a b'"),
        ('format = "kafka"\nservers = "h:1"\ntopic = "t"\norder_by = "k"', "order_by does not apply"),
        ('format = "console"\noptions = { checkpointLocation = "x" }', "give checkpoint in [pipeline]"),
        ('format = "csv"\npath = "x"\noptions = { path = "y" }', "give path"),
        ('format = "csv"\npath = "x"\noptions = { sep = [1] }', "must be a string, a number, true or false"),
    ],
)
def test_settings_that_make_no_sense_are_named(tmp_path: Path, sink: str, sentence: str) -> None:
    with pytest.raises(InvalidSettingError) as refused:
        described(tmp_path, sink)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "sink",
    [
        'format = "postgresql"\ntable = "postgresql://u:canary@h/d?table=t"',
        'format = "mysql"\ntable = "mysql://h/d?table=t&password=canary"',
        'format = "memory"\noptions = { password = "canary" }',
        'format = "memory"\noptions = { "a.secret.key" = "canary" }',
        'format = "kafka"\nservers = "h:1"\ntopic = "t"\noptions = { "kafka.sasl.jaas.config" = "canary" }',
    ],
)
def test_secrets_in_plain_text_are_refused_and_not_repeated(tmp_path: Path, sink: str) -> None:
    with pytest.raises(InvalidSettingError) as refused:
        described(tmp_path, sink)
    assert "canary" not in str(refused.value)


def test_secrets_come_from_the_environment_and_are_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "canary")
    monkeypatch.setenv("TABLE", "postgresql://u:canary@h/d?table=t")
    description = described(tmp_path, 'format = "memory"\noptions = { "a.password" = { env = "SECRET" }, b.c = 1 }')
    assert description.sink.options == {"a.password": "canary", "b.c": "1"}
    assert "canary" not in repr(description)
    with pytest.raises(InvalidSettingError, match="must not hold a password") as refused:
        described(tmp_path, 'format = "postgresql"\ntable = { env = "TABLE" }')
    assert "canary" not in str(refused.value)


def test_a_key_may_be_one_name_or_several(tmp_path: Path) -> None:
    address = "mysql://h/d?table=s.t"
    sink = described(tmp_path, f'format = "mysql"\ntable = "{address}"\nmode = "upsert"\nkey = "a"').sink
    assert (sink.key, sink.order_by, sink.mode) == (("a",), None, "upsert")
    sink = described(tmp_path, 'format = "kafka"\nservers = "h:1"\ntopic = "t"\nkey = ["a", "b"]').sink
    assert sink.key == ("a", "b")
    assert sink.topic is not None
    assert (sink.topic.value, sink.topic.id) == ("json", "semistream_id")


@pytest.mark.parametrize(
    ("sink", "place"),
    [
        ('format = "postgresql"\ntable = "postgresql://u@h/d?table=s.t"', "postgresql://h:5432/d/s.t"),
        ('format = "kafka"\nservers = "h:1"\ntopic = "t"', "kafka:///t"),
    ],
)
def test_a_checkpoint_knows_its_sink_by_what_holds_no_secret(tmp_path: Path, sink: str, place: str) -> None:
    import pyarrow as pa

    import semistream as ss

    ss.MasterTable.build(pa.table({"k": [1], "v": [2]}), tmp_path / "products", key="k")
    assert Belonging(described(tmp_path, sink), None).now.sink["path"] == place


MINE = WrittenBatches("mine", "sales", 5, "/old")


@pytest.mark.parametrize(
    ("query", "finished", "planned", "written", "sentence"),
    [
        ("mine", 4, 5, [MINE], None),
        ("mine", 5, 5, [MINE], None),
        ("mine", 5, 6, [MINE], None),
        (None, -1, -1, [], None),
        ("mine", -1, 0, [], None),
        ("new", -1, 0, [WrittenBatches("other", "another", 9)], None),
        (None, -1, -1, [MINE], r"which was at /old: restore that checkpoint.*another name"),
        ("new", 3, 3, [MINE], "restore that checkpoint"),
        ("mine", 6, 7, [MINE], "finished batches up to 6, but the table of .sink. ends with batch 5"),
        ("mine", 3, 4, [MINE], "batches up to 5, but the checkpoint .* only up to 4"),
        ("new", 3, 3, [], "finished batches up to 3, but the table of .sink. has none"),
    ],
)
def test_the_batches_of_a_table_lie_between_those_that_are_finished_and_those_that_are_planned(
    tmp_path: Path, query: str | None, finished: int, planned: int, written: list[WrittenBatches], sentence: str | None
) -> None:
    description = described(tmp_path, 'format = "delta"\npath = "x"')
    known = {each.query: each for each in written}
    if sentence is None:
        compare(description, known, query, finished, planned)
        return
    with pytest.raises(CheckpointMismatchError, match=sentence):
        compare(description, known, query, finished, planned)


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([], {"price", "code"}),
        ([RenameColumns({"price": "cost", "k": "j"})], {"cost", "code"}),
        ([SetColumns({"total": "quantity * PRICE", "k": "k + 1"})], {"price", "code", "total"}),
        ([SetColumns({"price": "1"}), DropColumns(("code",))], set()),
        ([SetColumns({"a": "`price`"}), SetColumns({"b": "a"}), SelectColumns(("b", "k"))], {"b"}),
    ],
)
def test_columns_that_come_from_the_master_table_are_followed_through_the_steps(
    steps: list[Step], found: set[str]
) -> None:
    stream, enriched = ["k", "quantity", "code"], ["k", "quantity", "code", "price"]
    assert columns_of_master(stream, enriched, ["code"], steps, ColumnNames(False)) == found
