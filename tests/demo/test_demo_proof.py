"""The demo on Spark: its proof, its numbers and its page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from demo_folders import CopiedDemo
from pyspark.sql import SparkSession

from semistream.demo import (
    DemoFolder,
    DemoSettings,
    DemoSummary,
    Proof,
    prepare,
    prove,
    stream_sales,
    warm_up,
)
from semistream.demo.demo_page import page
from semistream.master_table import MasterTable
from semistream.spark.batch_progress import BatchProgress

SETTINGS = DemoSettings(products=20_000, seconds=1, memory="16MB", rate=3_000)


@dataclass(frozen=True)
class Finished:
    """A demo that has run."""

    folder: DemoFolder
    batches: list[BatchProgress]
    shown: list[BatchProgress]
    summary: DemoSummary
    proof: Proof


@pytest.fixture(scope="module")
def finished(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Run a small demo once."""
    shown: list[BatchProgress] = []
    with DemoFolder.claimed(tmp_path_factory.mktemp("demo") / "out") as folder:
        folder.clear()
        description = prepare(folder, SETTINGS, lambda *_: None)
        warm_up(spark, description)
        batches = stream_sales(spark, description, SETTINGS.seconds, shown.append)
        proof = prove(spark, description, folder.products)
    summary = DemoSummary.of(SETTINGS, MasterTable(folder.master).info()["bytes"], batches)
    return Finished(folder, batches, shown, summary, proof)


def test_the_warehouse_is_what_sparks_own_join_gives(finished: Finished) -> None:
    assert finished.proof.holds, finished.proof.sentence
    assert finished.proof.found_rows == finished.proof.expected_rows > 0
    assert finished.proof.sentence.startswith(f"Proved: the {finished.proof.found_rows:,} rows")


def test_every_batch_is_shown_and_counted(finished: Finished) -> None:
    summary, batches = finished.summary, finished.batches
    assert finished.shown == batches
    assert [batch.batch_id for batch in batches] == list(range(len(batches)))
    assert summary.batches == len(batches)
    assert summary.rows_in == summary.rows_out == finished.proof.found_rows
    assert summary.cache_hits + summary.read_hits + summary.absent == summary.rows_in
    assert summary.absent == 0
    assert summary.page_reads > 0
    assert summary.bytes_read > 0
    assert 0 < summary.memory_bytes <= summary.budget_bytes == 16_000_000
    assert summary.worker_bytes > summary.memory_bytes
    assert 0 < summary.median_batch_seconds <= summary.p99_batch_seconds <= summary.busy_seconds
    lines = finished.folder.statistics.read_text().splitlines()
    assert [json.loads(line)["batch_id"] for line in lines] == [batch.batch_id for batch in batches]


def test_the_page_needs_nothing_but_itself(finished: Finished) -> None:
    text = page(finished.summary, finished.proof, finished.batches)
    elements = _Elements(text)
    assert "script" not in elements.names
    assert "link" not in elements.names
    assert not re.search(r"\b(https?:|//|@import|url\()", text.replace("<!--", ""))
    for target in elements.targets:
        assert (finished.folder.path / target).exists(), target


def test_the_page_tells_the_proof_the_numbers_and_four_charts(finished: Finished) -> None:
    text = page(finished.summary, finished.proof, finished.batches)
    assert finished.proof.sentence.replace("'", "&#x27;") in text
    assert f"{finished.summary.rows_out:,}" in text
    drawings = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert [ElementTree.fromstring(drawing).get("aria-label") for drawing in drawings] == [
        "Sales per second",
        "Where the answers came from",
        "Memory",
        "Reads",
    ]
    failed = page(finished.summary, Proof(3, 2, 1, 0), finished.batches)
    assert "The proof failed: 1 of the 3 rows" in failed
    assert 'class="proof fails"' in failed


def test_a_batch_that_was_written_but_not_committed_counts(
    spark: SparkSession, finished: Finished, tmp_path: Path
) -> None:
    copy = CopiedDemo(finished.folder, tmp_path / "copy")
    copy.forget_the_last_commit()
    assert prove(spark, copy.description, copy.folder.products) == finished.proof


def test_missing_rows_fail_the_proof(spark: SparkSession, finished: Finished, tmp_path: Path) -> None:
    copy = CopiedDemo(finished.folder, tmp_path / "copy")
    lost = copy.rows_of_a_file()
    copy.leave_a_file_out()
    whole = finished.proof.expected_rows
    proof = prove(spark, copy.description, copy.folder.products)
    assert proof == Proof(whole, whole - lost, missing_rows=lost, unexpected_rows=0)
    assert not proof.holds


def _one_changed(rows: pa.Table) -> pa.Table:
    changed = pc.add(rows["quantity"], pa.array([1] + [0] * (rows.num_rows - 1), pa.int32()))
    return rows.set_column(rows.schema.get_field_index("quantity"), "quantity", changed)


def _one_without_a_price(rows: pa.Table) -> pa.Table:
    here = pa.array([False] + [True] * (rows.num_rows - 1))
    place = rows.schema.get_field_index("sale_price")
    return rows.set_column(place, "sale_price", pc.if_else(here, rows["sale_price"], None))


@pytest.mark.parametrize(
    ("change", "more", "missing", "unexpected"),
    [
        (_one_changed, 0, 1, 1),
        (_one_without_a_price, 0, 1, 1),
        (lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]), 1, 0, 1),
        (lambda rows: pa.concat_tables([rows.slice(1), rows.slice(1, 1)]), 0, 1, 1),
    ],
    ids=["changed", "null", "twice", "twice in the place of another"],
)
def test_a_single_wrong_row_fails_the_proof(
    spark: SparkSession,
    finished: Finished,
    tmp_path: Path,
    change: Callable[[pa.Table], pa.Table],
    more: int,
    missing: int,
    unexpected: int,
) -> None:
    copy = CopiedDemo(finished.folder, tmp_path / "copy")
    copy.rewrite_a_file(change)
    whole = finished.proof.expected_rows
    proof = prove(spark, copy.description, copy.folder.products)
    assert proof == Proof(whole, whole + more, missing, unexpected)
    assert not proof.holds


def test_a_damaged_or_missing_warehouse_fails_the_proof_in_one_sentence(
    spark: SparkSession, finished: Finished, tmp_path: Path
) -> None:
    copy = CopiedDemo(finished.folder, tmp_path / "copy")
    copy.damage_a_file()
    damaged = prove(spark, copy.description, copy.folder.products)
    copy.folder.warehouse.rename(tmp_path / "elsewhere")
    gone = prove(spark, copy.description, copy.folder.products)
    for proof in (damaged, gone):
        assert not proof.holds
        assert proof.problem is not None
        assert "\n" not in proof.sentence
        assert proof.sentence.endswith(".")


class _Elements(HTMLParser):
    """Collects the names of elements and the targets of links, and checks that what is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.targets: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.targets += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag != "meta":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.names.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
