"""Compiles what joins need before the first of them, by joining small tables of the usual types."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pyarrow as pa

from semistream.algorithms.registry import DEFAULT_ALGORITHM, algorithm_named
from semistream.core.budget import MemoryBudget
from semistream.engine.output.output_plan import plan_output
from semistream.joining.batches import join
from semistream.joining.ordered_session import OrderedSession
from semistream.store import tables

_ROWS = 3_000
_MEMORY = "4MB"
_ANY_ORDER = (DEFAULT_ALGORITHM, "cachejoin")


def compile_kernels(progress: Callable[[int, int], None] | None = None) -> None:
    """Compile the kernels of builds, merges and joins for keys and columns of the usual types, unless they are."""
    data = _data()
    keys = [["number"], ["small"], ["text"], ["number", "text"]]
    with tempfile.TemporaryDirectory(prefix="semistream-warmup-") as folder:
        for done, key in enumerate(keys):
            if progress is not None:
                progress(done, len(keys))
            table = Path(folder) / "-".join(key)
            tables.build(_received(data), table, key)
            tables.build(data, table, key)
            tables.merge(table, data.slice(0, 10), data.slice(10, 5).select(key))
            made = data.select([*key]).append_column("quantity", data["number"])
            for stream in (made, _received(made)):
                for algorithm, columns in product(_ANY_ORDER, (None, ["real", "words"])):
                    joined = join(
                        stream, table, on=key, how="left", algorithm=algorithm, memory=_MEMORY, columns=columns
                    )
                    joined.read_all()
                for _ in _in_order(stream, table, key):
                    pass
    if progress is not None:
        progress(len(keys), len(keys))


def _in_order(stream: pa.Table, table: Path, key: list[str]) -> Iterator[pa.RecordBatch]:
    """Join as a task of Spark does, twice, so that the second run finds rows in the cache."""
    with tables.table_at(table).open() as store:
        plan = plan_output(stream.schema, store.schema, [(name, name) for name in key], how="left")
        recipe = algorithm_named(DEFAULT_ALGORITHM)
        session = OrderedSession(store, plan, stream.schema, recipe=recipe, budget=MemoryBudget(_MEMORY))
        for _ in range(2):
            yield from session.run(stream.to_batches())


def _received(rows: pa.Table) -> pa.Table:
    """Return rows as Spark sends them: in read-only memory, for which kernels are compiled separately."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def _data() -> pa.Table:
    numbers = list(range(_ROWS))
    texts = [f"key-{number}" for number in numbers]
    nullable = [None if number % 7 == 0 else number for number in numbers]
    return pa.table(
        {
            "number": pa.array(numbers, pa.int64()),
            "small": pa.array(numbers, pa.int32()),
            "text": pa.array(texts),
            "real": pa.array(nullable, pa.float64()),
            "flag": pa.array([number % 2 == 0 for number in numbers]),
            "short": pa.array([number % 100 for number in numbers], pa.int16()),
            "price": pa.array(nullable, pa.decimal128(20, 2)),
            "moment": pa.array(numbers, pa.timestamp("us", "UTC")),
            "words": pa.array([None if number % 5 == 0 else texts[number] for number in numbers]),
            "large": pa.array(texts, pa.large_string()),
            "tags": pa.array([[text] for text in texts]),
        }
    )
