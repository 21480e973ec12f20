"""Runs several pipelines in one process and one Spark session, until each has written all that is there now.

Called with a file to write and the files of the pipelines. Writes down what Delta tables and topics hold at the end;
ends with 1 and says why as soon as one of the pipelines fails.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from sink_kills import COLUMNS

from semistream.pipeline import PipelineDescription, jars, read_description
from semistream.pipeline.running import run_pipeline
from semistream.spark.spark_session import make_session


def main(held: Path, files: list[str]) -> None:
    """Run all pipelines side by side."""
    descriptions = [read_description(Path(file)) for file in files]
    formats = {name for description in descriptions for name in jars.formats_of(description)}
    settings = jars.settings_with_jars(formats, dict(descriptions[0].spark.settings))
    spark = make_session("sinks", descriptions[0].spark.master, settings, memory="8MB")

    def run(number: int) -> None:
        try:
            run_pipeline(descriptions[number], spark=spark)
        except BaseException:
            print(f"{descriptions[number].name}: {traceback.format_exc()}", flush=True)
            os._exit(1)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(descriptions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held.write_text(json.dumps({each.name: _held(spark, each) for each in descriptions}))
    spark.stop()


def _held(spark: SparkSession, description: PipelineDescription) -> Any:
    """Return the rows of a Delta table or the messages of a topic; None if it is neither."""
    sink = description.sink
    if sink.topic is not None:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", sink.topic.servers)
        return [json.loads(row.value) for row in reader.option("subscribe", sink.topic.name).load().collect()]
    if sink.format == "delta":
        rows = spark.read.format("delta").load(sink.path).select(*COLUMNS)
        return [tuple(row) for row in rows.collect()]
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
