"""The numbers and charts of a demo, without Spark."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.demo import DemoSettings, DemoSummary, Proof
from semistream.demo.charts import Chart, Series
from semistream.demo.demo_page import charts_of
from semistream.spark.batch_progress import BatchProgress
from semistream.spark.statistics import BatchStatistics


def batch(number: int, start_seconds: float, seconds: float, rows: int, hits: int) -> BatchProgress:
    """Return a batch whose rows all have a match."""
    counts = {field.name: 0 for field in fields(BatchStatistics)} | {
        "name": "sales",
        "query_id": "q",
        "tuples_in": rows,
        "cache_hits": hits,
        "read_hits": rows - hits,
        "bytes_read": 1000 * (rows - hits),
        "memory_bytes": 30_000_000 + number,
        "budget_bytes": 64_000_000,
        "resident_bytes": 250_000_000 + number,
    }
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=start_seconds)
    stamp = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    statistics = BatchStatistics(**counts)  # type: ignore[arg-type]
    return BatchProgress("sales", "q", number, stamp, rows, rows, seconds, seconds / 2, 0, (statistics,))


BATCHES = [
    batch(0, 0, 2, 100, 0),
    batch(1, 2, 0.5, 3_000, 1_000),
    batch(2, 3, 0.5, 900, 600),
    batch(3, 4, 1, 1_000, 900),
]


def test_a_summary_adds_up_batches() -> None:
    summary = DemoSummary.of(DemoSettings(), 123, BATCHES)
    assert (summary.rows_in, summary.rows_out, summary.batches) == (5_000, 5_000, 4)
    assert (summary.seconds, summary.busy_seconds) == (5, 4)
    assert (summary.rows_per_second, summary.busy_rows_per_second) == (1_000, 1_250)
    assert (summary.median_batch_seconds, summary.p99_batch_seconds) == (0.75, 2)
    assert summary.hit_rate == 0.5
    assert (summary.memory_bytes, summary.worker_bytes) == (30_000_003, 250_000_003)


def test_the_slowest_of_a_hundred_batches_is_not_in_the_99_percent() -> None:
    many = [batch(number, number * 10, 9 if number == 50 else 1, 10, 0) for number in range(100)]
    assert DemoSummary.of(DemoSettings(), 1, many).p99_batch_seconds == 1
    assert DemoSummary.of(DemoSettings(), 1, many[:99]).p99_batch_seconds == 9


def test_the_row_for_files_is_flat_and_has_the_proof() -> None:
    row = DemoSummary.of(DemoSettings(), 123, BATCHES).row(Proof(3, 3, 0, 0))
    assert row["proved"] is True
    assert not any(isinstance(value, dict | list) for value in row.values())


def test_rates_are_by_the_time_between_starts_and_between_ends() -> None:
    arrived, written = charts_of(BATCHES)[0].series
    assert list(arrived.values) == [1_500, 1_500, 900, 1_000]
    assert list(written.values) == pytest.approx([50, 6_000, 900, 1_000 / 1.5])


def test_sales_that_wait_for_a_later_batch_count_when_they_arrive() -> None:
    waiting = [replace(one, backlog=left) for one, left in zip(BATCHES, (100, 700, 400, 0), strict=True)]
    assert list(charts_of(waiting)[0].series[0].values) == [1_800, 1_800, 600, 600]


def test_shares_of_answers_add_up_to_all() -> None:
    hits = charts_of(BATCHES)[1]
    assert [sum(values) for values in zip(*(one.values for one in hits.series), strict=True)] == [100] * 4


def test_one_batch_is_enough_for_charts() -> None:
    for chart in charts_of(BATCHES[:1]):
        ElementTree.fromstring(chart.svg())


@given(
    data=st.data(),
    count=st.integers(1, 20),
    stacked=st.booleans(),
    kind=st.sampled_from(["line", "area", "dashes", "bars"]),
)
def test_whatever_the_values_a_chart_stays_in_its_frame(
    data: st.DataObject, count: int, stacked: bool, kind: str
) -> None:
    numbers = st.lists(st.floats(0, 1e12), min_size=count, max_size=count)
    seconds = sorted(data.draw(numbers))
    series = [Series("<a & b>", data.draw(numbers), "first", kind) for _ in range(2)]  # type: ignore[arg-type]
    chart = Chart("t", "n", seconds, series, str, stacked=stacked)
    drawing = ElementTree.fromstring(chart.svg())
    for element in drawing.iter():
        for pair in (element.get("points") or "").split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= 560
            assert 0 <= y <= 250
        if element.tag == "rect":
            x, y, width, height = (float(element.attrib[name]) for name in ("x", "y", "width", "height"))
            assert 0 <= x <= x + width <= 562
            assert 0 <= y <= y + height <= 250.2
    assert "<a " not in chart.legend()


@pytest.mark.parametrize(
    "wrong", [{"products": 0}, {"seconds": 0}, {"rate": 0}, {"memory": "much"}, {"algorithm": "quickjoin"}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(SemistreamError):
        DemoSettings(**wrong)  # type: ignore[arg-type]


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
def test_a_proof_holds_only_if_nothing_differs(expected: int, actual: int, missing: int, unexpected: int) -> None:
    proof = Proof(expected, actual, missing, unexpected)
    assert proof.holds == (expected == actual > 0 and missing == unexpected == 0)
    assert proof.sentence.startswith("Proved" if proof.holds else "The proof failed")
    assert re.fullmatch(r"[^\n]+\.", proof.sentence)


def test_rows_that_were_not_compared_prove_nothing() -> None:
    assert not Proof(5, 5, problem="the rows cannot be read.").holds
    with pytest.raises(InvalidSettingError):
        DemoSettings(seconds=float("nan"))


def test_the_axis_of_numbers_next_to_nothing_ends_at_one() -> None:
    chart = Chart("t", "n", [0.0], [Series("a", [5e-324], "first")], str)
    assert "1.0" in [element.text for element in ElementTree.fromstring(chart.svg()).iter()]
