"""docs/monitoring.md names every counter and every metric, and nothing else."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from doc_pages import DOCS

from semistream.spark.batch_progress import BatchProgress, MirrorNumbers
from semistream.spark.metrics_files import PrometheusFile
from semistream.spark.statistics import BatchStatistics

PAGE = (DOCS / "monitoring.md").read_text(encoding="utf-8")


def _batch() -> BatchProgress:
    texts = {"name": "products", "query_id": "q"}
    counts: dict[str, Any] = {field.name: texts.get(field.name, 1) for field in fields(BatchStatistics)}
    enrichments = (BatchStatistics(**counts),)
    return BatchProgress(
        "sales", "q", 1, "2026-01-01T00:00:00Z", 1, 1, 0.1, 0.1, 1, enrichments, 1, 1, MirrorNumbers(1)
    )


def test_every_counter_has_a_line() -> None:
    lines = re.findall(r"^\| (`[a-z_`, ]+) \|", PAGE.split("## Counters")[1], flags=re.MULTILINE)
    named = {name for line in lines for name in re.findall(r"`(\w+)`", line) if not name.startswith("semistream_")}
    assert named == set(_batch().enrichments[0].as_dict())


def test_every_metric_of_the_prometheus_file_has_a_line(tmp_path: Path) -> None:
    file = PrometheusFile(tmp_path / "metrics.prom")
    file.add(_batch())
    written = set(re.findall(r"^# TYPE (\w+)", file.text(), flags=re.MULTILINE))
    assert (
        set(re.findall(r"^\|.*`(semistream_\w+)` \|", PAGE.split("## What to watch")[0], flags=re.MULTILINE)) == written
    )


def test_the_keys_of_a_json_line_are_named() -> None:
    text = PAGE.split("Each JSON line")[1].split("Prometheus counters")[0]
    batch_alone = set(_batch().rows()[0]) - set(_batch().enrichments[0].as_dict())
    assert batch_alone <= set(re.findall(r"`(\w+)`", text))
