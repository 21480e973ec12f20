"""`semistream demo`: what it says, writes and answers; the demo itself is tested beside Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import fail, flat_objects, run, succeed

import semistream as ss
from semistream.core.budget import parse_bytes
from semistream.demo import DemoSettings

SMALL = ("--products", "20000", "--rate", "3000", "--seconds", "1", "--memory", "16MB")


def _command(tmp_path: Path, *arguments: str) -> list[str]:
    main = "from semistream.cli.main import main; main()"
    return [sys.executable, "-c", main, "demo", *SMALL, "--out", str(tmp_path / "out"), *arguments]


def test_the_help_needs_no_spark_and_names_the_options() -> None:
    shown = succeed("demo", "--help")
    for option in ("--seconds", "--products", "--memory", "--rate", "--algorithm", "--out", "--json"):
        assert option in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--seconds", "0"), "seconds"),
        (("--products", "0"), "products"),
        (("--rate", "-1"), "rate"),
        (("--memory", "much"), "memory size"),
        (("--algorithm", "quickjoin"), "quickjoin"),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_anything_is_written(
    tmp_path: Path, arguments: tuple[str, str], said: str
) -> None:
    assert said in fail("demo", "--out", tmp_path / "out", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_foreign_files_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "warehouse").write_text("mine")
    assert "the demo did not write" in fail("demo", "--out", tmp_path)
    assert (tmp_path / "warehouse").read_text() == "mine"


def test_without_java_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert "Java" in fail("demo", "--out", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("holds", [True, False])
def test_the_exit_code_tells_whether_the_proof_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holds: bool
) -> None:
    _without_spark(monkeypatch, missing_rows=0 if holds else 3)
    result = run("demo", *SMALL, "--out", tmp_path / "out", "--json", tmp_path / "out" / "demo.json")
    assert result.exit_code == (0 if holds else 1), result.output
    said = "Proved: the 5,000 rows" if holds else "The proof failed: 3 of the 5,000 rows"
    assert said in result.stdout
    assert said in (tmp_path / "out" / "report.html").read_text()
    [row] = flat_objects((tmp_path / "out" / "demo.json").read_text())
    assert row["proved"] is holds
    assert row["missing_rows"] == (0 if holds else 3)
    assert "Traceback" not in result.output


def test_the_first_lines_say_what_will_be_proved_and_then_how_large_the_table_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without_spark(monkeypatch, missing_rows=0)
    result = run("demo", *SMALL, "--memory", "500KB", "--out", tmp_path / "out")
    first, second, third, *rest = result.stderr.splitlines()
    assert first.startswith("20,000 products are a table far larger than the 500.0 KB")
    assert second.startswith("About 3,000 sales a second")
    assert third.startswith("The proof at the end: every sale is in the warehouse once")
    size = ss.MasterTable(tmp_path / "out" / "products").info()["bytes"]
    [said] = [line for line in rest if line.startswith("The master table has ")]
    assert f": {size / 500_000:.1f} times the memory" in said


def test_by_default_the_table_is_many_times_larger_than_the_memory() -> None:
    settings = DemoSettings()
    bytes_of_a_product = 60  # of about 67
    assert settings.products * bytes_of_a_product > 10 * parse_bytes(settings.memory)


def _without_spark(monkeypatch: pytest.MonkeyPatch, missing_rows: int) -> None:
    """Let the demo do all but start Spark."""
    from semistream import demo
    from semistream.spark.batch_progress import BatchProgress

    batch = BatchProgress("sales", "q", 0, "2026-01-01T00:00:00.000Z", 5_000, 5_000, 0.5, 0.4, 0, ())

    @contextmanager
    def no_session(_description: object) -> Iterator[None]:
        yield None

    monkeypatch.setattr("semistream.cli.interruption.install", lambda: None)
    monkeypatch.setattr("semistream.spark.spark_session.check_java", lambda: None)
    monkeypatch.setattr("semistream.pipeline.running.session_of", no_session)
    monkeypatch.setattr(demo, "warm_up", lambda *_: None)
    monkeypatch.setattr(demo, "stream_sales", lambda *_: [batch])
    monkeypatch.setattr(demo, "prove", lambda *_: demo.Proof(5_000, 5_000 - missing_rows, missing_rows, 0))


@pytest.mark.slow
def test_the_demo_runs_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    arguments = _command(tmp_path, "--json", str(tmp_path / "demo.json"))
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "Proved: the " in done.stdout
    assert "out/report.html" in done.stdout
    assert "semistream run out/pipeline.toml" in done.stdout
    assert "batch 0 in " in done.stderr
    assert "\nError: " not in done.stderr
    [row] = flat_objects((tmp_path / "demo.json").read_text())
    assert row["proved"] is True
    assert row["rows_in"] == row["rows_out"] == row["found_rows"] > 0
    assert {entry.name for entry in tmp_path.iterdir()} == {"out", "demo.json"}, "nothing is left beside the folder"


@pytest.mark.slow
@pytest.mark.parametrize("after", ["Building", "on Spark", "Python workers", "batch 0", "Comparing"])
def test_ctrl_c_ends_the_demo_cleanly_at_any_stage(tmp_path: Path, after: str) -> None:
    arguments = _command(tmp_path, "--seconds", "1" if after == "Comparing" else "600")
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, start_new_session=True
    ) as process:
        assert process.stderr is not None
        said = ""
        try:
            while after not in said:
                line = process.stderr.readline()
                assert line, said
                said += line
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to Java and all workers, too
            rest = process.communicate(timeout=300)[1]
        finally:
            process.kill()  # if it has not ended; Java ends with it
    assert process.returncode == 130, said + rest
    assert "Stopped by Ctrl-C." in rest
    assert "KeyboardInterrupt" not in rest
