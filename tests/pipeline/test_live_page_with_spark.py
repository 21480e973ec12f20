"""The live page beside a real pipeline: its figures are those of the JSON lines, and it ends with the pipeline."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from headless_browser import HeadlessBrowser
from pipeline_runs import SmallPipeline, sale
from pyspark.sql import SparkSession

from semistream.pipeline.live.live_page import LivePage, live_page
from semistream.pipeline.running import run_pipeline
from semistream.spark.batch_progress import BatchProgress

STATISTICS = 'port = 0\nkeys = true\njson_lines = "lines.jsonl"'


def small(spark: SparkSession, folder: Path, **changes: str) -> SmallPipeline:
    pipeline = SmallPipeline(spark, folder, **{"statistics": STATISTICS, **changes})
    pipeline.build()
    for number in range(3):
        pipeline.arrive(f"{number}.json", [sale(10 * number + row, 1 + row % 5) for row in range(8)])
    return pipeline


def asked(page: LivePage, path: str) -> Any:
    with urllib.request.urlopen(f"{page.url}{path}", timeout=10) as answer:
        return answer.read()


def test_the_page_tells_what_the_json_lines_tell(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = small(spark, tmp_path / "small")
    states: list[Any] = []
    with live_page(pipeline.description) as page:
        assert page is not None

        def ask(_: BatchProgress) -> None:
            states.append(json.loads(asked(page, "state")))

        totals = run_pipeline(pipeline.description, ask, spark=spark, page=page)
        metrics = asked(page, "metrics").decode()
        assert json.loads(asked(page, "health")) == {"healthy": True, "complaints": []}
        url = page.url
    lines = [json.loads(line) for line in (tmp_path / "small" / "lines.jsonl").read_text().splitlines()]
    assert [state["last"] for state in states] == [[line] for line in lines]
    assert len(lines) == 3
    last = states[-1]
    assert (last["totals"]["rows_in"], last["totals"]["rows_out"]) == (totals.rows_in, totals.rows_out) == (24, 24)
    (operator,) = last["operators"]
    assert operator["keys"]["hot"][0][1] == 6
    assert dict(operator["keys"]["unmatched"]) == {"4": 3, "5": 3}
    assert operator["memory_parts"]["cache"] > 0
    point = dict(zip(last["columns"], last["recent"][-1], strict=True))
    parts = sum(point[name] for name in ("planning", "source", "reads", "python", "sink", "commit"))
    assert parts == pytest.approx(lines[-1]["batch_seconds"], abs=0.02)
    assert lines[-1]["planning_seconds"] > 0
    assert lines[-1]["commit_seconds"] > 0
    assert 'semistream_input_rows_total{query="small"} 24\n' in metrics
    assert url is not None
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=5)


def test_a_page_that_cannot_be_served_does_not_stop_the_pipeline(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = small(spark, tmp_path / "small")
    with live_page(pipeline.description) as other:
        assert other is not None
        assert other.url is not None
        port = other.url.rstrip("/").rsplit(":", 1)[1]
        pipeline.parts["statistics"] = f"port = {port}"
        totals = run_pipeline(pipeline.description, spark=spark)
    assert totals.rows_out == 24
    assert totals.warning is not None
    assert f"port {port} of 127.0.0.1 is taken" in totals.warning


def test_the_command_serves_the_page_and_logs_json(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semistream.pipeline.running.session_of", lambda _: nullcontext(spark))
    pipeline = small(spark, tmp_path / "small", statistics='json_lines = "lines.jsonl"')
    ran = run("run", pipeline.description.file, "--ui", "--log", "json")
    assert ran.exit_code == 0, ran.output
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [one["event"] for one in told] == ["starting", "page", "memory", "batch", "batch", "batch", "ended"]
    assert told[1]["url"].startswith("http://127.0.0.1:40")
    lines = [json.loads(line) for line in (tmp_path / "small" / "lines.jsonl").read_text().splitlines()]
    assert [{name: one[name] for name in lines[0]} for one in told[3:6]] == lines
    assert told[-1]["rows_in"] == 24
    pipeline.arrive("poison.json", ["poison"])
    failed = run("run", pipeline.description.file, "--log", "json")
    assert failed.exit_code == 1
    last = json.loads(failed.stdout.splitlines()[-1])
    assert (last["level"], last["event"]) == ("error", "error")
    assert last["message"].startswith("A record of file:")
    assert "Error:" not in failed.stderr


@pytest.mark.slow
def test_the_browser_shows_the_figures_of_a_real_run(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = small(spark, tmp_path / "small")
    seen: list[tuple[Any, Any]] = []
    with live_page(pipeline.description) as page, HeadlessBrowser() as browser:
        assert page is not None
        assert page.url is not None
        browser.show_as(1200, 900)
        browser.open(page.url)

        def look(batch: BatchProgress) -> None:
            shown = f"last batch {batch.rows_in:,}"
            done = f"document.getElementById('since').textContent.includes(', {batch.batch_id + 1} batch')"
            browser.wait_for(done)
            assert browser.evaluate("document.getElementById('rows-in-about').textContent") == shown
            total = browser.evaluate("document.getElementById('rows-in').dataset.value")
            seen.append((json.loads(total), 8 * (batch.batch_id + 1)))

        run_pipeline(pipeline.description, look, spark=spark, page=page)
        assert browser.complaints() == []
    assert [shown for shown, _ in seen] == [right for _, right in seen] == [8, 16, 24]
