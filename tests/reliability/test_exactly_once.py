"""The short version of the kills: one driver and some workers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exactly_once import Plan, run
from exactly_once_project import Accounts, Project

from semistream.pipeline.jars import FOLDER_VARIABLE
from servers.spark_jars import jars_of, servers_folder


@pytest.mark.slow
def test_no_row_is_lost_or_doubled_when_workers_and_the_driver_are_killed(tmp_path: Path) -> None:
    plan = Plan(
        seed=3, ids=1_200, files=8, driver_kills=1, worker_kills=2, slots=1, merge_every_seconds=2.0, lose_a_task=True
    )
    figures = run(plan, tmp_path)
    assert figures["ids"] == 1_200
    assert figures["lost tasks"] >= 1, "a task was tried again, and the pipeline went on"


def test_rows_that_may_wait_leave_once_whatever_is_killed_and_changed(tmp_path: Path) -> None:
    plan = Plan(
        seed=5,
        ids=1_200,
        files=8,
        driver_kills=1,
        worker_kills=2,
        slots=1,
        merge_every_seconds=2.0,
        lose_a_task=True,
        max_wait="3 seconds",
    )
    figures = run(plan, tmp_path)
    assert figures["ids"] == 1_200
    assert figures["lost tasks"] >= 1, "a task was tried again, and the pipeline went on"
    assert figures["waited"] > 0, "some rows waited between micro-batches"


@pytest.mark.slow
def test_no_message_of_a_topic_is_lost_or_doubled_by_a_stop_and_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars_of("kafka")
    monkeypatch.setenv(FOLDER_VARIABLE, str(servers_folder()))
    plan = Plan(
        seed=5, ids=1_200, files=8, driver_kills=2, worker_kills=0, slots=1, kafka=True, stops=1, dead_letters=True
    )
    figures = run(plan, tmp_path)
    assert (figures["ids"], figures["letters"]) == (1_200, 8)


def test_the_accounts_notice_what_is_missing_double_mixed_and_miscounted(tmp_path: Path) -> None:
    project = Project(tmp_path, 1, ids=4, files=1, dead_letters=True)
    log = project.sink / "_spark_metadata"
    log.mkdir(parents=True)
    versions = {1: np.full(2_000, 1), 2: np.full(2_000, 2)}
    for batch, (sales, changed) in enumerate([([0, 1, 1], [1, 1, 1]), ([2], [2]), ([1, 7], [1, 2])]):
        file = project.sink / f"{batch}.parquet"
        pq.write_table(pa.table({"sale_id": sales, "product_id": [5] * len(sales), "changed": changed}), file)
        (log / str(batch)).write_text(f"v1\n{json.dumps({'path': f'file://{file}'})}\n")
    (tmp_path / "lines.jsonl").write_text('{"batch_id": 0, "rows_out": 3}\n{"batch_id": 1, "rows_out": 2}\n')
    accounts = project.accounts(versions)
    assert (accounts.rows, accounts.missing, accounts.extra) == (6, 1, 3)
    assert (accounts.mixed_batches, accounts.miscounted_batches, accounts.letters_missing) == (1, 1, 1)
    with pytest.raises(AssertionError, match="'missing ids': 1"):
        accounts.check()
    Accounts().check()
