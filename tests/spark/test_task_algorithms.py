"""What algorithms do in a task with order "any": just what they do in `ss.join`, up to the end of the input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from enrich_tasks import enrich_task, new_worker, run_task

import semistream as ss
from semistream.algorithms.registry import ALGORITHMS
from semistream.engine.reading.group_reader import PageGroupReader
from semistream.joining import session as sessions
from semistream.master_table import MasterTable
from semistream.policies.contract import PageChoice
from semistream.testing import assert_same_rows, joined_rows, reference_join

MASTER_ROWS = 60_000
STREAM_ROWS = 60_000
MEMORY = 4_000_000
ASKED = ["hybridjoin", "hybridjoin-l", "hybridjoin-pq", "ssij", "cachejoin", "sscj", "cachejoin-l", "cachejoin-pq"]
SMALL = {"read_bytes": 20_000.0, "cache_share": 0.03, "threshold": 1.0}
"""Small reads, and a cache that is soon full."""


def master() -> pa.Table:
    keys = np.arange(MASTER_ROWS)
    return pa.table({"key": keys, "name": [f"name {key:>60}" for key in keys.tolist()], "price": keys * 0.5})


def stream() -> pa.Table:
    random = np.random.default_rng(5)
    ranks = np.floor(np.exp(random.random(STREAM_ROWS) * np.log(MASTER_ROWS + 50.0))).astype(np.int64)
    keys = ranks * 7919 % (MASTER_ROWS + 50)
    label = pa.array([f"a label of some length {row:8}" for row in range(STREAM_ROWS)])
    return pa.table({"key": keys, "number": np.arange(STREAM_ROWS), "label": label})


STREAM = stream()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("algorithms") / "master"
    MasterTable.build(master(), path, "key", page_bytes=1024)
    return path


@dataclass
class Watched:
    """What a join has read and asked."""

    reads: list[list[int]] = field(default_factory=list)
    reads_of_input: int = 0
    """How many of the reads were made before the input had ended."""
    asked: int = 0
    """How often the page choice was asked."""


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Watched]:
    """Return what begins to watch the next join."""
    watched = Watched()
    read, pieces = PageGroupReader._read, sessions._pieces

    def reading(reader: PageGroupReader, first: Any, last: Any, **how: Any) -> Any:
        watched.reads.append([*first.tolist(), *last.tolist()])
        return read(reader, first, last, **how)

    def ending(*arguments: Any) -> Iterator[Any]:
        yield from pieces(*arguments)
        watched.reads_of_input = len(watched.reads)

    def counting(choose: Any) -> Any:
        def counted(choice: PageChoice, *arguments: Any, **named: Any) -> Any:
            watched.asked += 1
            return choose(choice, *arguments, **named)

        return counted

    monkeypatch.setattr(PageGroupReader, "_read", reading)
    monkeypatch.setattr(sessions, "_pieces", ending)
    for kind in _kinds_of(PageChoice):
        if "choose" in vars(kind):
            monkeypatch.setattr(kind, "choose", counting(vars(kind)["choose"]))

    def start() -> Watched:
        nonlocal watched
        watched = Watched()
        return watched

    return start


def _kinds_of(kind: type) -> Iterator[type]:
    for below in kind.__subclasses__():
        yield below
        yield from _kinds_of(below)


def in_a_task(table: Path, algorithm: str, monkeypatch: pytest.MonkeyPatch) -> tuple[pa.Table, dict[str, Any]]:
    new_worker(monkeypatch)
    task = enrich_task(
        table,
        STREAM.schema,
        on="key",
        algorithm=algorithm,
        order="any",
        memory_bytes=MEMORY,
        parameters=small_for(algorithm),
    )
    return run_task(task, STREAM.rename_columns(["c0", "c1", "c2"]).to_batches(max_chunksize=10_000))


def small_for(algorithm: str) -> dict[str, float]:
    return {name: value for name, value in SMALL.items() if name in ALGORITHMS[algorithm].parameters}


def test_published_algorithms_read_in_a_task_what_they_read_in_a_join_and_each_something_else(
    table: Path, watch: Callable[[], Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = reference_join(STREAM, master(), on={"key": "key"}, how="left")
    read: dict[str, list[list[int]]] = {}
    for algorithm in ASKED:
        on_spark = watch()
        output, counters = in_a_task(table, algorithm, monkeypatch)
        assert joined_rows(output).rows == expected.rows, algorithm
        assert on_spark.asked >= 20, f"{algorithm} was asked {on_spark.asked} times"
        assert counters["tuples_in"] == STREAM_ROWS

        joined = watch()
        batches = STREAM.to_batches(max_chunksize=10_000)
        whole = ss.join(
            batches, table, on="key", how="left", memory=MEMORY, algorithm=algorithm, parameters=small_for(algorithm)
        ).read_all()
        assert_same_rows(joined_rows(whole), expected)
        of_task = on_spark.reads[: on_spark.reads_of_input]
        assert len(of_task) >= 20, algorithm
        assert of_task == joined.reads[: joined.reads_of_input], algorithm
        read[algorithm] = of_task
    same = [(one, other) for one in ASKED for other in ASKED if one < other and read[one] == read[other]]
    assert not same


def test_what_still_waits_at_the_end_is_answered_by_reads_of_single_pages(
    table: Path, watch: Callable[[], Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = watch()
    in_a_task(table, "meshjoin", monkeypatch)
    last = watched.reads[watched.reads_of_input :]
    assert 0 < len(last) < 20, "a few large reads of many ranges"


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_every_algorithm_gives_the_rows_of_the_reference_in_a_task(
    table: Path, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, counters = in_a_task(table, algorithm, monkeypatch)
    expected = reference_join(STREAM, master(), on={"key": "key"}, how="left")
    assert joined_rows(output).rows == expected.rows
    left = (
        counters["cache_hits"]
        + counters["read_hits"]
        + counters["absent"]
        + counters["null_keys"]
        + counters["refused"]
    )
    assert left == counters["tuples_in"] == STREAM_ROWS
