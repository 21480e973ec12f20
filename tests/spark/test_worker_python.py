"""The Python of local workers is compared with the driver's when a query is planned."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from enrich_runs import build
from pyspark.sql import SparkSession

import semistream as ss
from semistream.spark.worker_python import WorkerPythonError, check_worker_python


def program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def session(python: str, master: str = "local[2]", settings: dict[str, str] | None = None, **more: Any) -> Any:
    conf = SimpleNamespace(get=lambda name, default: (settings or {}).get(name, default))
    context = SimpleNamespace(master=master, pythonExec=python, getConf=lambda: conf, _python_includes=[], **more)
    return SimpleNamespace(_sc=context, sparkContext=context)


def test_a_worker_without_semistream_is_told_at_plan_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = build(tmp_path)
    bare = program(tmp_path / "python3", f'exec "{sys.executable}" -I -S "$@"')
    monkeypatch.setattr(spark.sparkContext, "pythonExec", bare)
    with pytest.raises(WorkerPythonError) as raised:
        ss.enrich(spark.range(3).toDF("product_id"), table, on="product_id")
    assert str(raised.value) == (
        f"Spark's workers would run {bare}, which has no semistream: set PYSPARK_PYTHON to {sys.executable} before "
        f"the session starts."
    )


def test_other_versions_and_programs_that_do_not_run_are_told(tmp_path: Path) -> None:
    for name, text, says in (
        ("old", "echo 3 8 True", "which is Python 3.8 and not"),
        ("broken", "exit 3", "which does not run"),
    ):
        with pytest.raises(WorkerPythonError, match=says):
            check_worker_python(session(program(tmp_path / name, text)))
    with pytest.raises(WorkerPythonError, match="which is not there"):
        check_worker_python(session(str(tmp_path / "none")))


def test_nothing_is_asked_where_workers_are_elsewhere_or_have_modules_of_their_own(tmp_path: Path) -> None:
    broken = program(tmp_path / "broken", "exit 3")
    check_worker_python(session(sys.executable))
    check_worker_python(session(program(tmp_path / "same", f'exec "{sys.executable}" "$@"')))
    check_worker_python(session(broken, master="spark://node:7077"))
    check_worker_python(session(broken, settings={"spark.executorEnv.PYTHONPATH": "/lib"}))
    check_worker_python(session(broken, settings={"spark.archives": "environment.tar.gz"}))
    check_worker_python(SimpleNamespace())  # type: ignore[arg-type]
