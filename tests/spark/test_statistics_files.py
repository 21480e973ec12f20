"""The files that tell how a pipeline is doing: whole at any time, flat, and countable."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.core.errors import InvalidSettingError
from semistream.spark.batch_progress import ROWS_WRITTEN, BatchProgress, ProgressListener, batch_progress
from semistream.spark.metrics_files import JsonLinesFile, PrometheusFile
from semistream.spark.prometheus_metrics import PrometheusMetrics
from semistream.spark.statistics import TaskStatistics

EMPTY: dict[Any, Any] = {"int": 0, "float": 0.0, "str": "x"}
TASK = {field.name: EMPTY.get(field.type, {}) for field in fields(TaskStatistics)}


def report(batch_id: int = 7, **changes: Any) -> Any:
    """Return a progress report as Spark hands it to listeners."""
    of_join = {**TASK, "name": "n"}
    tasks = [
        json.dumps({**of_join, "tuples_in": 10, "cache_hits": 8}),
        json.dumps({**of_join, "tuples_in": 5, "host": "i"}),
    ]
    actual = {
        "name": "sales",
        "id": "q",
        "batchId": batch_id,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "numInputRows": 15,
        "durationMs": {"triggerExecution": 500, "addBatch": 300},
        "sources": [SimpleNamespace(latestOffset='{"position": 40, "plan": "x"}', endOffset='{"position": 15}')],
        "observedMetrics": {"semistream:n": {"tasks": tasks}, ROWS_WRITTEN: {"rows": 12}, "other": {"x": 1}},
        **changes,
    }
    return SimpleNamespace(**actual)


def test_a_report_of_spark_becomes_one_flat_object() -> None:
    batch = batch_progress(report())
    assert (batch.rows_in, batch.rows_out, batch.seconds, batch.backlog) == (15, 12, 0.5, 25)
    assert (batch.rows_in_per_second, batch.rows_out_per_second) == (30, 24)
    (row,) = batch.rows()
    assert (row["batch_id"], row["tuples_in"], row["cache_hits"], row["tasks"]) == (7, 15, 8, 2)


def test_a_batch_without_data_has_no_counts() -> None:
    batch = batch_progress(report(numInputRows=0, observedMetrics={"semistream:n": {"tasks": []}}, durationMs={}))
    assert batch.enrichments == ()
    assert (batch.rows_out, batch.rows_in_per_second) == (None, 0)
    assert [row["batch_id"] for row in batch.rows()] == [7]


@pytest.mark.parametrize(
    ("latest", "end", "backlog"),
    [
        ('{"t": {"0": 10, "1": 7}}', '{"t": {"0": 4, "1": 7}}', 6),
        ('{"t": {"0": 10, "1": 7}}', '{"t": {"0": 4}}', 13),
        (None, '{"logOffset": 3}', None),
        ("7", "5", None),
        ("not json", "5", None),
    ],
)
def test_the_backlog_is_the_distance_of_offsets_that_tell_it(latest: str | None, end: str, backlog: int | None) -> None:
    assert batch_progress(report(sources=[SimpleNamespace(latestOffset=latest, endOffset=end)])).backlog == backlog


def test_json_lines_are_appended_batch_by_batch(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lines.jsonl"
    JsonLinesFile(path).add(batch_progress(report(1)))
    JsonLinesFile(path).add(batch_progress(report(2)))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["batch_id"] for row in rows] == [1, 2]
    assert not any(isinstance(value, dict | list) for row in rows for value in row.values())


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "lines").symlink_to(tmp_path / "victim")
    with pytest.raises(InvalidSettingError, match=r"\[statistics\] json_lines"):
        JsonLinesFile(tmp_path / "lines")
    PrometheusFile(tmp_path / "lines").add(batch_progress(report()))
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "lines").is_symlink()


def test_prometheus_counts_over_batches_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "metrics.prom"
    file = PrometheusFile(path)
    assert path.read_text() == ""
    for batch_id in (7, 8):
        file.add(batch_progress(report(batch_id)))
    text = path.read_text()
    assert 'semistream_tuples_in_total{query="sales",name="n"} 30\n' in text
    assert 'semistream_input_rows_total{query="sales"} 30\n' in text
    assert 'semistream_last_batch_id{query="sales"} 8\n' in text
    assert 'semistream_backlog_rows{query="sales"} 25\n' in text
    assert "# TYPE semistream_cache_hits_total counter\n" in text
    assert "# TYPE semistream_memory_bytes gauge\n" in text
    assert [entry.name for entry in tmp_path.iterdir()] == ["metrics.prom"]
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


@given(st.text(max_size=30))
def test_any_name_stays_one_line_of_prometheus_text(name: str) -> None:
    metrics = PrometheusMetrics()
    metrics.add(batch_progress(report(name=name)))
    lines = metrics.text().split("\n")
    assert all(line.startswith(("#", "semistream_")) for line in lines if line)


def test_a_listener_hands_on_its_own_query_and_survives_errors() -> None:
    handed: list[int] = []

    def fail_once(batch: BatchProgress) -> None:
        handed.append(batch.batch_id)
        if len(handed) == 1:
            raise OSError("disk full")

    listener = ProgressListener("sales", fail_once)
    events: list[Any] = [SimpleNamespace(progress=report(batch_id)) for batch_id in (1, 2)]
    listener.onQueryStarted(SimpleNamespace(name="sales", runId="r"))  # type: ignore[arg-type]
    for event in [*events, SimpleNamespace(progress=report(3, name="other"))]:
        listener.onQueryProgress(event)
    assert handed == [1, 2]
    assert str(listener.error) == "disk full"
    listener.onQueryTerminated(SimpleNamespace(runId="another"))  # type: ignore[arg-type]
    assert not listener.finished.is_set()
    listener.onQueryTerminated(SimpleNamespace(runId="r"))  # type: ignore[arg-type]
    assert listener.finished.is_set()
