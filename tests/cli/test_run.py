"""Running pipelines from the command line: checks, progress, signals and going on after them."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import fail, flat_objects, succeed
from rich.console import Console

import semistream as ss
from semistream.cli import run_screen
from semistream.generator import products
from semistream.spark.batch_progress import BatchProgress

PIPELINE = """
[pipeline]
name = "sales"
checkpoint = "state"
[source]
format = "sales"
options = { products = 500, rate = 2_000, maxRowsPerBatch = 500, partitions = 1 }
[enrich]
memory = "16MB"
[[dimension]]
table = "products"
on = "product_id"
columns = ["supplier_id"]
[sink]
format = "parquet"
path = "warehouse"
[statistics]
json_lines = "lines.jsonl"
[spark]
master = "local[1]"
"spark.hadoop.test.secret.key" = { env = "SECRET_OF_TEST" }
"""
SECRET = "hunter2-of-the-test"


def _batch(batch_id: int, **counts: Any) -> BatchProgress:
    enrichment: Any = SimpleNamespace(as_dict=lambda: counts)
    return BatchProgress("sales", "q", batch_id, "now", 1_000, 900, 0.5, 0.4, 7, (enrichment,) if counts else ())


def _start(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from semistream.cli.main import main; main()", "run", *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SECRET_OF_TEST": SECRET},
        start_new_session=True,
    )


def _stop_in_the_middle(number: signal.Signals, *arguments: str | Path) -> tuple[int, str, str]:
    """Start a pipeline, send a signal after its first batch, and return the exit code and what it has said."""
    process = _start(*arguments)
    assert process.stderr is not None
    said = ""
    commands: list[str] = []
    for line in process.stderr:
        said += line
        if line.startswith("batch "):
            commands = _commands_below(process.pid)
            # A terminal sends Ctrl-C to all processes of the group, an administrator SIGTERM to one.
            os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
            break
    out, rest = process.communicate(timeout=300)
    assert any("java" in command for command in commands), said
    assert not any(SECRET in command for command in commands)
    return process.returncode, out, said + rest


def _commands_below(process_id: int) -> list[str]:
    """Return the command lines of all processes that a process has started."""
    commands = []
    for child in psutil.Process(process_id).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            commands.append(" ".join(child.cmdline()))
    return commands


def test_help_says_what_a_pipeline_is() -> None:
    shown = succeed("run", "--help")
    assert all(word in shown for word in ("PIPELINE.toml", "--check", "--json", "source, prepare, enrich", "Ctrl-C"))


def test_what_is_wrong_in_the_file_is_said_before_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "There is no file" in fail("run", tmp_path / "nothing.toml")
    file = tmp_path / "pipeline.toml"
    file.write_text(PIPELINE.replace('"state"', '"../state"'))
    assert fail("run", file).startswith("[pipeline] checkpoint leaves the pipeline's folder")
    file.write_text(PIPELINE.replace("[spark]", '[spark]\n"spark.ssl.keyPassword" = "hunter2"'))
    assert "hunter2" not in fail("run", file, "--check")
    file.write_text(PIPELINE)
    assert "SECRET_OF_TEST" in fail("run", file)
    monkeypatch.setenv("SECRET_OF_TEST", SECRET)
    assert "JSON file" in fail("run", file, "--json", tmp_path)


@pytest.mark.parametrize("options", [["--check"], []])
def test_a_path_that_is_not_there_is_said_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.setenv("SECRET_OF_TEST", SECRET)
    monkeypatch.setattr(
        "semistream.spark.spark_session.make_session", lambda *_, **__: pytest.fail("Spark was started")
    )
    file = tmp_path / "pipeline.toml"
    source = PIPELINE.replace('"sales"\noptions', '"json"\npath = "incomming"\nschema = "product_id BIGINT"\n#')
    file.write_text(source)
    assert "[[dimension]] does not fit: There is no master table at" in fail("run", file, *options)
    ss.MasterTable.build(products(50, seed=1), tmp_path / "products", key="product_id")
    said = fail("run", file, *options)
    assert (
        said == f"[source] path is {tmp_path}/incomming, which does not exist: create the folder, or correct the path."
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipeline.toml", "products"], "nothing was written"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("product_id BIGINT", "product_id BIGNT", "'BIGNT' is not a type, did you mean 'bigint'?"),
        ('["supplier_id"]', '["suplier_id"]', "does not fit: The master table has no column 'suplier_id'"),
        ('on = "product_id"', 'on = "product"', "The stream has no column 'product'"),
        (
            "[sink]",
            "[[transform]]\ndrop = ['quantitty']\n[sink]",
            "names 'quantitty', which is not a column: did you mean",
        ),
        ("[sink]", "[[transform]]\nsort = ['supplier_id', 'x desc']\n[sink]", "number 1: sort names 'x'"),
        ("[sink]", "[[prepare]]\nsort = ['product_id']\n[sink]", "sort is not a key of this table"),
        ("[sink]", "[[prepare]]\nrename = {quantity = 'supplier_id'}\n[sink]", "have a column 'supplier_id'"),
        ('"16MB"', "32", "32 bytes of memory is too little"),
        ('"16MB"', '"16MB"\nroom = "room"', "[enrich] room is not used: give `max_wait`"),
        ('"16MB"', '"16MB"\nparameters = {cashe = 1}', "no parameter 'cashe'"),
        ('"16MB"', '"16MB"\nmax_wait = 1\norder = "input"', "[[dimension]] does not fit: Rows that wait are overtaken"),
        (
            "columns =",
            'unmatched = "dead_letters"\ncolumns =',
            "[[dimension]] does not fit: Unmatched rows need a place",
        ),
    ],
)
def test_names_and_schemas_that_are_wrong_are_said_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, says: str
) -> None:
    monkeypatch.setenv("SECRET_OF_TEST", SECRET)
    monkeypatch.setattr(
        "semistream.spark.spark_session.make_session", lambda *_, **__: pytest.fail("Spark was started")
    )
    ss.MasterTable.build(products(50, seed=1), tmp_path / "products", key="product_id")
    (tmp_path / "incoming").mkdir()
    schema = 'schema = "product_id BIGINT, quantity INT"'
    text = PIPELINE.replace('"sales"\noptions', f'"json"\npath = "incoming"\n{schema}\n#')
    assert old in text
    file = tmp_path / "pipeline.toml"
    file.write_text(text.replace(old, new, 1))
    assert says in fail("run", file, "--check")


def test_an_unknown_column_in_an_expression_is_told_in_one_sentence_and_without_a_stack(tmp_path: Path) -> None:
    ss.MasterTable.build(products(50, seed=1), tmp_path / "products", key="product_id")
    file = tmp_path / "pipeline.toml"
    file.write_text(PIPELINE.replace("[sink]", "[[transform]]\nfilter = 'supplier > 0'\n[sink]"))
    process = _start(file, "--check")
    _, said = process.communicate(timeout=200)
    assert process.returncode == 1
    (sentence,) = [line for line in said.splitlines() if "supplier" in line]
    assert sentence.startswith("Error: [[transform]] number 1: ")
    assert "supplier_id" in sentence, "what there is instead"


def test_signals_stop_cleanly_and_the_next_start_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.toml"
    file.write_text(PIPELINE)
    ss.MasterTable.build(products(500, seed=1), tmp_path / "products", key="product_id")
    code, out, said = _stop_in_the_middle(signal.SIGINT, file, "--json", tmp_path / "run.json")
    assert code == 130, said
    assert said.endswith("Stopped by Ctrl-C; the next start goes on from there.\n")
    assert "Traceback" not in said
    assert "Memory of workers: 592.8 MB for 2 workers" in said
    assert " rows in and " in out
    (totals,) = flat_objects((tmp_path / "run.json").read_text())
    assert totals["stopped"] is True
    assert totals["rows_in"] == totals["rows_out"] > 0

    code, _, said = _stop_in_the_middle(signal.SIGTERM, file)
    assert code == 143, said
    assert "Traceback" not in said
    assert said.endswith("Stopped by SIGTERM; the next start goes on from there.\n")

    committed = []
    for entry in sorted((tmp_path / "warehouse" / "_spark_metadata").glob("[0-9]*")):
        committed += [json.loads(line)["path"] for line in entry.read_text().splitlines()[1:]]
    tables = [pq.read_table(path.removeprefix("file://"), columns=["sale_id"]) for path in committed]
    sales = sorted(pa.concat_tables(tables)["sale_id"].to_pylist())
    assert sales == list(range(1, len(sales) + 1)), "no sale is lost or there twice"
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    lines = [json.loads(line)["batch_id"] for line in (tmp_path / "lines.jsonl").read_text().splitlines()]
    assert lines == sorted(set(lines)), "both runs tell their batches"
    assert len(lines) >= 2


def test_facts_of_a_batch_tell_rates_hits_reads_memory_and_backlog() -> None:
    counts = {"tuples_out": 1_000, "cache_hits": 600, "read_hits": 300, "absent": 100, "shadow_hits": 50}
    facts = dict(
        run_screen.facts_of(
            _batch(3, **counts, read_requests=20, bytes_read=2_000_000, memory_bytes=10**7, budget_bytes=10**8)
        )
    )
    assert facts == {
        "batch": "3 in 0.50 s",
        "in": "1,000 rows, 2,000/s",
        "out": "900 rows, 1,800/s",
        "hits": "60.0% cache, 30.0% read, 10.0% absent",
        "twice the cache": "5.0% more from the cache",
        "reads": "20, 2.0 MB in all",
        "memory": "10.0 MB of 100.0 MB",
        "backlog": "7 rows",
    }


def test_each_of_several_joins_is_told_by_its_name() -> None:
    joins: Any = [SimpleNamespace(as_dict=lambda name=name: {"name": name}) for name in ("customers", "products")]
    one, several = _batch(3, name="customers"), replace(_batch(3), enrichments=tuple(joins))
    assert [value for name, value in run_screen.facts_of(several) if name == "join"] == ["customers", "products"]
    assert "join" not in dict(run_screen.facts_of(one))


def test_without_a_terminal_there_are_few_plain_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = SimpleNamespace(now=50.0)
    monkeypatch.setattr(run_screen, "time", SimpleNamespace(monotonic=lambda: clock.now))
    description: Any = SimpleNamespace(name="sales", sink=SimpleNamespace(format="noop"))
    with run_screen.screen(description) as screen:
        for batch_id in range(100):
            screen.show(_batch(batch_id))
            clock.now += 0.1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(";")[0] for line in lines] == [f"batch {number} in 0.50 s" for number in (0, 40, 80)]


def test_a_terminal_shows_the_last_batch_live(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    description: Any = SimpleNamespace(name="sales", sink=SimpleNamespace(format="noop"))
    with run_screen.screen(description) as screen:
        screen.show(_batch(1))
        screen.show(_batch(2, tuples_out=10, cache_hits=10))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "100.0% cache" in shown.err


@pytest.mark.parametrize("columns", [80, 120])
def test_a_terminal_shows_clock_totals_and_the_master_and_breaks_no_line(columns: int) -> None:
    moments = iter([0.0, 1.0, 3_700.0, 3_725.0])
    view = run_screen.View("sales", now=lambda: next(moments))
    counts = {"tuples_out": 10, "cache_hits": 10, "shadow_hits": 1, "read_requests": 123_456, "bytes_read": 10**9}
    view.show(_batch(123_456, version=1_234, **counts))
    view.show(_batch(123_457, version=1_234, **counts))
    out = Console(width=columns, record=True, file=io.StringIO())
    out.print(view.drawn())
    lines = out.export_text().splitlines()
    facts = {line[:17].strip(): line[17:].strip() for line in lines[1:]}
    assert lines[0].strip() == "sales  running for 1:02:05"
    assert facts["total"] == "2,000 rows in, 1,800 out, 0.54/s, 2 batches"
    assert facts["last batch"] == "ended 0:00:25 ago"
    assert facts["master"] == "version 1234"
    assert all(facts), "no value goes on in a line of its own"


def test_a_terminal_shows_a_clock_while_the_first_batch_is_awaited() -> None:
    moments = iter([0.0, 75.0])
    out = Console(width=80, record=True, file=io.StringIO())
    out.print(run_screen.View("sales", now=lambda: next(moments)).drawn())
    assert out.export_text().splitlines() == ["sales  running for 0:01:15", "Waiting for the first batch."]
