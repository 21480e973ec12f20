"""Pipelines at work: the examples in short form, statistics, restarts, and what workers need."""

from __future__ import annotations

import json
import shutil
import threading
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pipeline_runs import SmallPipeline, sale
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import semistream as ss
from semistream.algorithms.registry import DEFAULT_ALGORITHM
from semistream.cli.main import app
from semistream.core.errors import UnknownColumnError
from semistream.generator import products
from semistream.pipeline import read_description
from semistream.pipeline.planning import plan_pipeline
from semistream.pipeline.running import run_pipeline
from semistream.pipeline.worker_memory import WorkerMemory, memory_warning, needed_memory
from semistream.spark.batch_progress import BatchProgress

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_example_of_generated_sales_enriches_every_sale_once(spark: SparkSession, tmp_path: Path) -> None:
    text = (EXAMPLES / "pipeline_sales.toml").read_text()
    short = {
        "100_000": "1_000",
        "rate = 5_000": "rows = 5_000, rowsPerBatch = 2_000",
        'every = "1 second"': "available_now = true",
    }
    for old, new in short.items():
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / "pipeline_sales.toml"
    file.write_text(text)
    catalogue = pa.Table.from_batches(products(1_000, seed=1))
    ss.MasterTable.build(catalogue, tmp_path / "products", key="product_id")
    batches: list[BatchProgress] = []
    description = read_description(file)
    # A Python source of Spark before 4.2 gives one batch a start.
    while sum(batch.rows_in for batch in batches) < 5_000:
        totals = run_pipeline(description, batches.append, spark=spark)
        assert totals.rows_in == totals.rows_out > 0
        assert totals.counts["absent"] == 0
    assert [batch.rows_in for batch in batches] == [2_000, 2_000, 1_000]
    written = pq.read_table(tmp_path / "warehouse" / "sales").sort_by("sale_id")
    assert written.column_names == [
        *("sale_id", "surrogate_key", "quantity", "sale_date", "supplier_id", "sale_price", "total")
    ]
    assert written["sale_id"].to_pylist() == list(range(1, 5_001))
    prices = dict(zip(catalogue["surrogate_key"].to_pylist(), catalogue["sale_price"].to_pylist(), strict=True))
    rows = written.select(["surrogate_key", "quantity", "sale_price", "total"]).to_pylist()
    assert all(row["sale_price"] == prices[row["surrogate_key"]] for row in rows)
    assert all(row["total"] == row["quantity"] * row["sale_price"] for row in rows)
    lines = [json.loads(line) for line in (tmp_path / "statistics" / "sales.jsonl").read_text().splitlines()]
    assert [line["batch_id"] for line in lines] == [0, 1, 2]
    assert sum(line["tuples_in"] for line in lines) == 5_000
    assert all(line["memory_bytes"] <= line["budget_bytes"] == 64_000_000 for line in lines)
    assert not any(isinstance(value, dict | list) for line in lines for value in line.values())
    needed = needed_memory(spark, description)
    assert (needed.slots, needed.operators) == (2, 2), "a Python source needs workers of its own"


def test_the_example_of_orders_cleans_converts_and_puts_bad_lines_aside(spark: SparkSession, tmp_path: Path) -> None:
    file = Path(shutil.copy(EXAMPLES / "pipeline_orders.toml", tmp_path))
    articles = pa.table({"article": ["ä", "b"], "name": ["lamp", "tent"], "weight_grams": [100, 2_500]})
    ss.MasterTable.build(articles, tmp_path / "articles", key="article")
    (tmp_path / "incoming").mkdir()
    order = {"order_id": 1, "sku": "b", "quantity": 2, "cents": 250, "ordered_at": "2026-03-01T23:30:00"}
    orders = [order, {**order, "order_id": 2, "sku": "ä"}, {**order, "order_id": 3, "quantity": 0}, order]
    lines = [*(json.dumps(one) for one in orders), "garbage", json.dumps({**order, "order_id": 4, "sku": "?"})]
    (tmp_path / "incoming" / "1.json").write_text("\n".join(lines))
    totals = run_pipeline(read_description(file), spark=spark)
    assert totals.rows_out == 3
    written = pq.read_table(tmp_path / "warehouse" / "orders").sort_by("order_id").to_pylist()
    assert [(row["order_id"], row["article_name"], row["weight_kg"], row["amount"]) for row in written] == [
        *[(1, "tent", 5.0, 5.0), (2, "lamp", 0.2, 5.0), (4, None, None, 5.0)]
    ]
    assert {row["day"] for row in written} == {"2026-03-01"}
    metrics = (tmp_path / "statistics" / "orders.prom").read_text()
    assert 'semistream_written_rows_total{query="orders"} 3\n' in metrics
    assert 'semistream_absent_total{query="orders",name="orders"} 1\n' in metrics
    assert list((tmp_path / "dead_letters" / "orders").glob("batch=000000000/part-*"))


def test_steps_before_the_join_make_its_key_and_spare_it_rows(spark: SparkSession, tmp_path: Path) -> None:
    prepare = "[[prepare]]\nfilter = 'quantity > 0'\n[[prepare]]\nset = {product_id = 'product_id - 100'}"
    pipeline = SmallPipeline(spark, tmp_path, prepare=prepare)
    pipeline.build()
    pipeline.arrive("1.json", [sale(1, 101), sale(2, 102, 0), sale(3, 103)])
    totals = pipeline.run()
    assert [(row["sale_id"], row["name"]) for row in pipeline.written()] == [(1, "pen"), (3, "nib")]
    assert totals.counts["cache_hits"] + totals.counts["read_hits"] == 2
    pipeline.parts["prepare"] = "[[prepare]]\ndrop = ['prodct']"
    with pytest.raises(UnknownColumnError, match=r"\[\[prepare\]\] number 1: drop names 'prodct'"):
        pipeline.run()


def test_the_example_with_all_settings_can_be_planned(spark: SparkSession, tmp_path: Path) -> None:
    file = Path(shutil.copy(EXAMPLES / "pipeline_all_settings.toml", tmp_path))
    ss.MasterTable.build(products(10, seed=1), tmp_path / "products", key="product_id")
    (tmp_path / "incoming").mkdir()
    (tmp_path / "incoming" / "1.csv").write_text("sale_id;product_id;quantity;sale_date\n")
    before = sorted(tmp_path.rglob("*"))
    with pytest.warns(UserWarning, match="`disk` changes nothing"):
        planned = plan_pipeline(spark, read_description(file))
    assert planned.rows.columns == [
        *("sale_id", "surrogate_key", "product", "quantity", "total", "supplier_id", "sale_hour")
    ]
    assert sorted(tmp_path.rglob("*")) == before, "a plan writes nothing"


def test_the_command_checks_without_writing_and_runs_with_totals(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semistream.pipeline.running.session_of", lambda _: nullcontext(spark))
    monkeypatch.setenv("COLUMNS", "200")
    small = SmallPipeline(spark, tmp_path / "small")
    small.build()
    small.arrive("1.json", [sale(1, 1), sale(2, 9)])
    file, before = small.description.file, sorted(small.folder.iterdir())

    checked = CliRunner().invoke(app, ["run", str(file), "--check"], prog_name="semistream")
    assert checked.exit_code == 0, checked.output
    assert "products, left on product_id" in checked.stdout
    assert f"by {DEFAULT_ALGORITHM}, 16.0 MB for all dimensions together" in checked.stdout
    steps = [line.split("  ")[0].strip() for line in checked.stdout.splitlines()]
    assert {"source", "dimension products"} <= set(steps), checked.stdout
    assert "Memory of workers: " in checked.stdout
    assert "all that is there now" in checked.stdout
    assert [line.split() for line in checked.stdout.splitlines() if line.startswith(("name", "price"))] == [
        *[["name", "string"], ["price", "int"]]
    ]
    assert "nothing was started" in checked.stdout
    assert sorted(small.folder.iterdir()) == before

    ran = CliRunner().invoke(app, ["run", str(file), "--json", str(tmp_path / "run.json")], prog_name="semistream")
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.startswith("small: 2 rows in and 2 out in 1 batch and ")
    (totals,) = json.loads((tmp_path / "run.json").read_text())
    assert (totals["rows_in"], totals["read_hits"], totals["absent"], totals["stopped"]) == (2, 1, 1, False)

    small.arrive("2.json", ["poison"])
    failed = CliRunner().invoke(app, ["run", str(file)], prog_name="semistream")
    assert failed.exit_code == 1
    assert failed.stderr.splitlines()[-1].startswith("Error: A record of file:")
    assert failed.stdout == ""


def test_a_stop_ends_the_run_and_the_next_one_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    small = SmallPipeline(spark, tmp_path / "small", trigger="")
    small.build()
    small.arrive("1.json", [sale(1, 1)])
    stop = threading.Event()
    totals = run_pipeline(small.description, lambda _: stop.set(), spark=spark, stop=stop)
    assert (totals.stopped, totals.rows_in) == (True, 1)
    assert spark.streams.active == []
    small.arrive("2.json", [sale(2, 2)])
    small.parts["trigger"] = "available_now = true"
    assert small.run().rows_in == 1
    assert [row["name"] for row in small.written()] == ["pen", "ink"]


def test_a_second_start_is_refused_at_once_and_the_first_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    small = SmallPipeline(spark, tmp_path / "small", trigger="")
    small.build()
    small.arrive("1.json", [sale(1, 1)])
    description, stop = small.description, threading.Event()
    said = []

    def start_again(batch: BatchProgress) -> None:
        if batch.batch_id == 0:
            said.append(CliRunner().invoke(app, ["run", str(description.file)], prog_name="semistream"))
            small.arrive("2.json", [sale(2, 2)])
        else:
            stop.set()

    run_pipeline(description, start_again, spark=spark, stop=stop)
    assert [second.exit_code for second in said] == [1]
    assert said[0].stderr.splitlines()[-1].startswith("Error: Another query uses the checkpoint")
    assert "Starting" not in said[0].stderr, "it is refused before Spark is started"
    assert [row["name"] for row in small.written()] == ["pen", "ink"]


def test_statistics_that_cannot_be_written_do_not_stop_the_stream(spark: SparkSession, tmp_path: Path) -> None:
    small = SmallPipeline(spark, tmp_path / "small", statistics='json_lines = "lines"')
    small.build()
    small.arrive("1.json", [sale(1, 1)])
    lines = small.folder / "lines"

    def spoil(_: BatchProgress) -> None:
        lines.unlink()
        lines.mkdir()

    totals = small.run(spoil)
    assert totals.rows_out == 1
    assert totals.warning is not None
    assert "lines" in totals.warning


def test_workers_that_need_more_than_there_is_are_warned_about(spark: SparkSession) -> None:
    assert memory_warning(spark, WorkerMemory(2, 1, 64_000_000)) is None
    sentence = memory_warning(spark, WorkerMemory(1_000, 2, 10**12))
    assert sentence is not None
    assert "lower [enrich] memory" in sentence
    assert str(WorkerMemory(2, 2, 64_000_000)) == "1.5 GB for 4 workers of 375.6 MB, with a budget of 64.0 MB each"
