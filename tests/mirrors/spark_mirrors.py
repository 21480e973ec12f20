"""Mirrors whose source Spark reads, in a process of their own, since a session has the jars that it began with.

Called with what to try, a folder, and the settings of Spark as JSON; the rest depends on what is tried.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import semistream as ss
from semistream.core.errors import SchemaDriftError, SemistreamError

Rows = dict[int, tuple[Any, ...]]


def _content(mirror: ss.MasterTable) -> Rows:
    from stored_rows import stored_rows

    rows = stored_rows(mirror).to_pylist()
    return {row["id"]: tuple(value for name, value in row.items() if name != "id") for row in rows}


def _counted_comparisons() -> list[object]:
    """Return a list that grows whenever all rows of a Delta table are read."""
    seen: list[object] = []
    everything = ss.DeltaSource._everything

    def counted(self: ss.DeltaSource, *arguments: Any) -> Any:
        seen.append(self)
        return everything(self, *arguments)

    ss.DeltaSource._everything = counted  # type: ignore[method-assign]
    return seen


def try_delta(spark: SparkSession, folder: Path, *, feed: bool) -> None:
    """Change a Delta table in every way, and compare the mirror after each."""
    path = str(folder / "table")
    name = f"delta.`{path}`"
    properties = f"TBLPROPERTIES (delta.enableChangeDataFeed = {str(feed).lower()})"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, name STRING, price DOUBLE) USING delta {properties}")
    spark.range(500).selectExpr("id", "'first' AS name", "id * 1.0D AS price").write.format("delta").mode(
        "append"
    ).save(path)
    mirror = ss.MasterTable.build(ss.DeltaSource(path), folder / "mirror", key="id", page_bytes=512)

    def compare(*, upserted: int | None = None, deleted: int | None = None) -> None:
        done = mirror.refresh()
        expected = {row["id"]: tuple(row)[1:] for row in spark.read.format("delta").load(path).collect()}
        assert _content(mirror) == expected
        assert upserted in (None, done.rows_upserted), done
        assert deleted in (None, done.rows_deleted), done
        assert not mirror.refresh().changed

    compare(upserted=0, deleted=0)
    whole = _counted_comparisons()
    spark.sql(f"UPDATE {name} SET name = 'second' WHERE id IN (3, 400)")
    spark.sql(f"DELETE FROM {name} WHERE id = 7")
    spark.sql(f"INSERT INTO {name} VALUES (1000, 'new', 1.5), (7, 'again', NULL)")
    compare(upserted=4, deleted=0)
    assert len(whole) == (0 if feed else 1), "the feed was not used"
    chance = random.Random(2)
    for turn in range(2):
        ids = chance.sample(range(520), 20)
        values = ", ".join(f"({id_}, 'turn {turn}', {id_ / 2})" for id_ in ids)
        spark.sql(
            f"MERGE INTO {name} t USING (SELECT * FROM VALUES {values} AS v(id, name, price)) s ON t.id = s.id "
            f"WHEN MATCHED AND s.id % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        spark.sql(f"OPTIMIZE {name}")
        compare()
    spark.range(10).selectExpr("id", "'over' AS name", "0.0D AS price").write.format("delta").mode("overwrite").save(
        path
    )
    compare(upserted=10)
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (extra INT)")
    spark.sql(f"UPDATE {name} SET extra = 5 WHERE id = 1")
    done = mirror.refresh()
    assert (done.columns_added, done.rebuilt) == (("extra",), True)
    compare()
    version = mirror.version
    one = spark.range(3).selectExpr("id", "'only' AS name", "'text' AS price", "1 AS extra")
    one.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    with pytest.raises(SchemaDriftError, match="'price' of the source is string now and double"):
        mirror.refresh()
    assert mirror.version == version


def try_kafka(spark: SparkSession, folder: Path, servers: str) -> None:
    """Send upserts and deletes in both formats, and compare the mirror after each."""

    def send(topic: str, messages: list[tuple[str | None, str | None]]) -> None:
        frame = spark.createDataFrame(messages, "key STRING, value STRING").coalesce(1)
        frame.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()

    schema = "id BIGINT, name STRING, price DOUBLE"
    state: Rows = {}

    def plain(id_: int, name: str | None) -> tuple[str, str | None]:
        if name is None:
            state.pop(id_, None)
            return json.dumps({"id": id_}) if id_ % 2 else str(id_), None
        state[id_] = (name, id_ / 4)
        key = json.dumps({"id": id_}) if id_ % 2 else str(id_)
        return key, json.dumps({"id": id_, "name": name, "price": id_ / 4, "unknown": 1})

    def envelope(id_: int, name: str | None) -> tuple[str, str | None]:
        before = {"id": id_, "name": "old", "price": 0.0}
        after = None if name is None else {"id": id_, "name": name, "price": id_ / 4}
        if name is None:
            state.pop(id_, None)
        else:
            state[id_] = (name, id_ / 4)
        value = {"before": before, "after": after, "op": "d" if name is None else "u", "ts_ms": 1}
        wrapped = {"schema": {}, "payload": value} if id_ % 2 else value
        return json.dumps({"schema": {}, "payload": {"id": id_}} if id_ % 2 else {"id": id_}), json.dumps(wrapped)

    chance = random.Random(3)
    for kind, message in (("json", plain), ("debezium", envelope)):
        state.clear()
        topic = f"products-{kind}"
        send(topic, [message(id_, "first") for id_ in range(50)] + [message(3, None), message(4, "second")])
        source = ss.KafkaSource(servers, topic, schema, format=kind)
        mirror = ss.MasterTable.build(source, folder / kind, key="id")
        assert _content(mirror) == state
        assert not mirror.refresh().changed
        for turn in range(2):
            sent = [
                message(id_, None if chance.random() < 0.4 else f"turn {turn} {place}")
                for place, id_ in enumerate(chance.choices(range(60), k=30))
            ]
            if kind == "debezium":
                sent.append((json.dumps({"id": 59}), None))
                state.pop(59, None)
            send(topic, sent)
            mirror.refresh()
            assert _content(mirror) == state, kind
        offsets = mirror.info()["mirror"]["position"]["offsets"]
        assert set(offsets) == {"0", "1"}
        assert sum(offsets.values()) == 52 + 60 + (2 if kind == "debezium" else 0)
    with pytest.raises(SemistreamError, match="cannot be read"):
        ss.MasterTable.build(ss.KafkaSource("127.0.0.1:1", "nothing", schema), folder / "none", key="id")


def main() -> None:
    """Try what the arguments say."""
    what, folder, settings = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name, value in {"spark.sql.shuffle.partitions": "2", **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        if what == "kafka":
            try_kafka(spark, folder, sys.argv[4])
        else:
            try_delta(spark, folder, feed=what == "delta with its feed")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
