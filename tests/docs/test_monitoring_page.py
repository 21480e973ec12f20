"""docs/monitoring.md names every counter and every metric, and nothing else."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from doc_pages import DOCS

from semistream.pipeline.live.about import AboutPipeline
from semistream.pipeline.live.board import LiveBoard
from semistream.pipeline.live.master_watch import MasterFacts
from semistream.spark.batch_progress import BatchProgress, MirrorNumbers
from semistream.spark.metrics_files import PrometheusFile
from semistream.spark.statistics import NOT_FLAT, BatchStatistics

PAGE = (DOCS / "monitoring.md").read_text(encoding="utf-8")


def _batch() -> BatchProgress:
    texts = {"name": "products", "query_id": "q"}
    given = [field.name for field in fields(BatchStatistics) if field.name not in NOT_FLAT]
    counts: dict[str, Any] = {name: texts.get(name, 1) for name in given}
    enrichments = (BatchStatistics(**counts),)
    return BatchProgress(
        "sales", "q", 1, "2026-01-01T00:00:00Z", 1, 1, 0.1, 0.1, 1, enrichments, 1, 1, MirrorNumbers(1)
    )


def _metrics(board: LiveBoard) -> set[str]:
    return set(re.findall(r"^# TYPE (\w+)", board.metrics(), flags=re.MULTILINE))


def test_every_counter_has_a_line() -> None:
    lines = re.findall(r"^\| (`[a-z0-9_`, ]+) \|", PAGE.split("## Counters")[1], flags=re.MULTILINE)
    named = {name for line in lines for name in re.findall(r"`(\w+)`", line) if not name.startswith("semistream_")}
    assert named == set(_batch().enrichments[0].as_dict())


def test_every_metric_of_the_prometheus_file_has_a_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.prom"
    PrometheusFile(path).add(_batch())
    facts = MasterFacts("products", "/products", created=0.0, pins=1)
    board = LiveBoard(AboutPipeline("sales", "json", "noop", 0.0, False, None, None, False), lambda: [facts])
    board.add(_batch())
    assert set(re.findall(r"^# TYPE (\w+)", path.read_text(), flags=re.MULTILINE)) < _metrics(board)
    written = _metrics(board)
    assert (
        set(re.findall(r"^\|.*`(semistream_\w+)` \|", PAGE.split("## What to watch")[0], flags=re.MULTILINE)) == written
    )


def test_the_keys_of_a_json_line_are_named() -> None:
    text = PAGE.split("Each JSON line")[1].split("Prometheus counters")[0]
    batch_alone = set(_batch().rows()[0]) - set(_batch().enrichments[0].as_dict())
    assert batch_alone <= set(re.findall(r"`(\w+)`", text))
