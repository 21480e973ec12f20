"""Makes tasks of `enrich` and calls them in this process, as Spark calls them in a worker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from semistream.engine.output.output_plan import OutputPlan, plan_output
from semistream.master_table import MasterTable
from semistream.spark import task_run as tasks
from semistream.spark.held_join import Order
from semistream.spark.pinning import Pin
from semistream.spark.task import EnrichTask
from semistream.spark.worker import Worker
from semistream.store.address import Address


def enrich_task(
    table: Path,
    stream: pa.Schema,
    *,
    on: str = "product_id",
    how: str = "left",
    memory_bytes: int = 4_000_000,
    pin: Pin | None = None,
    columns: list[str] | None = None,
    name: str = "sales",
    algorithm: str = "demandjoin",
    order: Order = "input",
    parameters: dict[str, float] | None = None,
    dead_letters: Path | None = None,
    hot_keys: int = 0,
) -> EnrichTask:
    """Return a task for a stream whose key column has the name of the master's."""
    positional = pa.schema([field.with_name(f"c{place}") for place, field in enumerate(stream)])
    key = f"c{stream.names.index(on)}"
    with MasterTable(table).open() as store:
        plan = plan_output(positional, store.schema, [(key, store.key[0])], how=how, columns=columns)
        read = pa.schema([store.schema.field(name) for name in (*plan.master_columns, *plan.master_keys)])
        version = store.version
    output = pa.schema([field.with_name(f"o{place}").with_nullable(True) for place, field in enumerate(plan.schema)])
    return EnrichTask(
        name=name,
        table=Address.of(table),
        pin=Pin(version) if pin is None else pin,
        algorithm=algorithm,
        parameters=parameters or {},
        order=order,
        plan=OutputPlan(plan.how, output, plan.sources, plan.master_columns, plan.stream_keys, plan.master_keys),
        master_schema=read,
        declared=output.append(pa.field("statistics", pa.string())),
        memory_bytes=memory_bytes,
        stream_names=tuple(stream.names),
        dead_letters=dead_letters,
        hot_keys=hot_keys,
    )


def handed_over(rows: pa.Table, batch_rows: int = 100) -> Iterator[pa.RecordBatch]:
    """Yield rows as Spark hands them over: in small batches, with columns named by their places."""
    renamed = rows.rename_columns([f"c{place}" for place in range(rows.num_columns)])
    yield from renamed.to_batches(max_chunksize=batch_rows)


def run_task(task: EnrichTask, batches: Iterable[pa.RecordBatch]) -> tuple[pa.Table, dict[str, Any]]:
    """Return the output of a task without its last row, and what that row carries."""
    whole = pa.Table.from_batches(list(task(iter(batches))), schema=task.declared)
    carried = whole.slice(whole.num_rows - 1)
    assert whole["statistics"].null_count == whole.num_rows - 1, "one row carries statistics"
    assert all(carried[name].null_count for name in whole.schema.names[:-1])
    content: dict[str, Any] = json.loads(carried["statistics"][0].as_py())
    return whole.slice(0, whole.num_rows - 1).drop_columns(["statistics"]), content


def new_worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    """Let tasks run in a worker that has just started, and return it."""
    worker = Worker()
    monkeypatch.setattr(tasks, "WORKER", worker)
    return worker
