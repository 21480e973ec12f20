"""The files of a source that no micro-batch has taken yet."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from pipeline_runs import SmallPipeline, sale
from pyspark.sql import SparkSession

from semistream.pipeline import waiting_files
from semistream.pipeline.waiting_files import WaitingFiles
from semistream.spark.batch_progress import BatchProgress


class _Source:
    def __init__(self, folder: Path) -> None:
        self.incoming = folder / "in coming"
        self.log = folder / "state" / "sources" / "0"
        self.incoming.mkdir()
        self.log.mkdir(parents=True)
        self.seconds = 0.0
        self.waiting = WaitingFiles(
            self.incoming, folder / "state" / "sources" / "0", name_filter="*.json", now=lambda: self.seconds
        )

    def arrive(self, name: str, size: int) -> None:
        path = self.incoming / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * size)

    def take(self, entry: str, *names: str) -> None:
        lines = [json.dumps({"path": "file://" + quote(str(self.incoming / name)), "batchId": 0}) for name in names]
        (self.log / entry).write_text("\n".join(["v1", *lines]))

    def count(self) -> tuple[int, int]:
        self.seconds += 10
        return self.waiting.count()


@pytest.fixture
def source(tmp_path: Path) -> _Source:
    return _Source(tmp_path)


def test_files_wait_until_the_log_names_them(source: _Source) -> None:
    assert source.count() == (0, 0)
    source.arrive("a b.json", 10)
    source.arrive("day=1/c.json", 5)
    assert source.count() == (2, 15)
    source.take("0", "a b.json")
    assert source.count() == (1, 5)
    source.take("1", "day=1/c.json")
    source.arrive("d.json", 7)
    assert source.count() == (1, 7)


def test_what_spark_does_not_read_does_not_wait(source: _Source) -> None:
    for name in ("_hidden.json", ".half.json", "_temporary/a.json", "notes.txt"):
        source.arrive(name, 3)
    assert source.count() == (0, 0)


def test_a_log_that_was_compacted_counts_as_the_entries_that_it_replaces(source: _Source) -> None:
    names = [f"{number}.json" for number in range(12)]
    for name in names:
        source.arrive(name, 1)
    source.take("9.compact", *names[:10])
    source.take("8", "8.json")
    source.take("10", "10.json")
    (source.log / ".9.compact.crc").write_bytes(b"\0")
    assert source.count() == (1, 1)


def test_a_look_at_the_folder_is_taken_now_and_then_only(source: _Source) -> None:
    assert source.count() == (0, 0)
    source.arrive("a.json", 4)
    assert source.waiting.count() == (0, 0), "the last look was a moment ago"
    assert source.count() == (1, 4)


def test_a_pipeline_tells_the_files_that_wait(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_files, "_SECONDS_BETWEEN_LOOKS", 0.0)
    small = SmallPipeline(spark, tmp_path / "p", statistics='prometheus = "metrics.prom"')
    small.build()
    sizes = [small.arrive(f"{number}.json", [sale(number, 1)]).stat().st_size for number in range(4)]
    batches: list[BatchProgress] = []
    small.run(batches.append)
    assert len(batches) == 4
    counts = [(batch.backlog_files, batch.backlog_bytes) for batch in batches]
    assert counts[-1] == (0, 0)
    assert counts == sorted(counts, reverse=True)
    assert 0 < counts[0][0] <= 3  # type: ignore[operator]
    assert counts[0][1] == counts[0][0] * sizes[0]  # type: ignore[operator]
    assert 'semistream_backlog_files{query="small"} 0\n' in (small.folder / "metrics.prom").read_text()
