"""The process of a Flink job: what it is told, what it must not show, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from semistream_lab.peers.contract import PeerFailedError
from semistream_lab.peers.flink import job_process
from semistream_lab.peers.flink.running_job import Query, RunningJob

QUERY = Query(["CREATE TABLE one WITH ('password' = 'secret')"], "INSERT INTO one", cache_bytes=1000)
STAND_IN = """#!{python}
import json, os, pathlib, sys
order = json.loads(sys.stdin.readline())
seen = {{"arguments": sys.argv, "environment": dict(os.environ), "order": order}}
pathlib.Path(os.environ["FLINK_LOG_DIR"], "seen.json").write_text(json.dumps(seen))
print(json.dumps({answer}), flush=True)
sys.stdin.read()
pathlib.Path(os.environ["FLINK_LOG_DIR"], "ended").touch()
"""


def stand_in(folder: Path, answer: dict[str, Any]) -> Path:
    """Return a program that takes the place of Flink's Python and notes what it gets."""
    program = folder / "python"
    program.write_text(STAND_IN.format(python=sys.executable, answer=repr(answer)))
    program.chmod(0o700)
    return program


def started(folder: Path, python: Path) -> RunningJob:
    """Start a job."""
    return RunningJob(python, QUERY, 2, folder / "logs", name="flink-test", stays=True)


def test_a_password_is_neither_an_argument_nor_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMISTREAM_PEERS_POSTGRESQL", "postgresql://me:secret@127.0.0.1:1/none")
    job = started(tmp_path, stand_in(tmp_path, {"job": "7"}))
    try:
        assert job.answer() == {"job": "7"}
    finally:
        job.close()
    seen = json.loads((tmp_path / "logs" / "seen.json").read_text())
    assert seen["order"]["statements"] == QUERY.statements
    assert seen["order"]["stays"] is True
    assert "secret" not in json.dumps([seen["arguments"], seen["environment"]])
    assert seen["environment"]["SEMISTREAM_PEER"] == f"flink-test-{os.getpid()}"
    assert (tmp_path / "logs").stat().st_mode & 0o077 == 0


def test_a_job_ends_when_it_is_closed(tmp_path: Path) -> None:
    job = started(tmp_path, stand_in(tmp_path, {"job": "7"}))
    job.answer()
    assert (job.peak_bytes() or 0) > 0
    job.close()
    assert (tmp_path / "logs" / "ended").exists()
    assert job.peak_bytes() is None


def test_an_error_of_flink_is_one_sentence_with_its_kind(tmp_path: Path) -> None:
    job = started(tmp_path, stand_in(tmp_path, {"failed": "Py4JJavaError"}))
    try:
        with pytest.raises(PeerFailedError, match=r"error \(Py4JJavaError\)"):
            job.answer()
    finally:
        job.close()


def test_a_python_without_flink_fails_and_does_not_hang(tmp_path: Path) -> None:
    job = started(tmp_path, Path(sys.executable))
    try:
        with pytest.raises(PeerFailedError, match=r"ModuleNotFoundError|ImportError"):
            job.answer()
    finally:
        job.close()


def test_a_program_that_says_nothing_is_told(tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexit 3\n")
    silent.chmod(0o700)
    job = started(tmp_path, silent)
    try:
        with pytest.raises(PeerFailedError, match="no answer"):
            job.answer()
    finally:
        job.close()


def test_the_process_needs_nothing_of_semistream(tmp_path: Path) -> None:
    copied = tmp_path / "job_process.py"
    copied.write_text(Path(job_process.__file__).read_text())
    done = subprocess.run(
        [sys.executable, "-I", "-S", copied], input="{}\n", capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["failed"] in {"ModuleNotFoundError", "ImportError"}
    assert "semistream" not in done.stderr


@pytest.mark.parametrize("stays", [False, True])
def test_an_order_becomes_settings_statements_and_a_query(monkeypatch: pytest.MonkeyPatch, stays: bool) -> None:
    done: list[tuple[str, ...]] = []
    _pretend_flink(monkeypatch, done)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(read=lambda: ""))
    messages: list[dict[str, Any]] = []
    order = {"settings": {"a": "1"}, "statements": ["one", "two"], "query": "three", "stays": stays}
    job_process.run(order, messages.append)
    assert done[:4] == [("set", "a", "1"), ("sql", "one"), ("sql", "two"), ("sql", "three")]
    assert done[4:] == ([("cancel",)] if stays else [("wait",)])
    assert messages == [{"job": "7"} if stays else {"finished": True}]


def _pretend_flink(monkeypatch: pytest.MonkeyPatch, done: list[tuple[str, ...]]) -> None:
    class Configuration:
        def set_string(self, name: str, value: str) -> None:
            done.append(("set", name, value))

    class Settings:
        @staticmethod
        def new_instance() -> Settings:
            return Settings()

        def in_streaming_mode(self) -> Settings:
            return self

        def with_configuration(self, configuration: Configuration) -> Settings:
            assert isinstance(configuration, Configuration)
            return self

        def build(self) -> Settings:
            return self

    class Job:
        def get_job_id(self) -> str:
            return "7"

        def cancel(self) -> SimpleNamespace:
            done.append(("cancel",))
            return SimpleNamespace(result=lambda: None)

    class Tables:
        @staticmethod
        def create(settings: Settings) -> Tables:
            assert isinstance(settings, Settings)
            return Tables()

        def execute_sql(self, statement: str) -> SimpleNamespace:
            done.append(("sql", statement))
            return SimpleNamespace(get_job_client=Job, wait=lambda: done.append(("wait",)))

    common, table = ModuleType("pyflink.common"), ModuleType("pyflink.table")
    common.Configuration = Configuration  # type: ignore[attr-defined]
    table.EnvironmentSettings, table.TableEnvironment = Settings, Tables  # type: ignore[attr-defined]
    for name, module in (("pyflink", ModuleType("pyflink")), ("pyflink.common", common), ("pyflink.table", table)):
        monkeypatch.setitem(sys.modules, name, module)
