"""What the reader of sales tells Spark, asked without Spark: options, offsets, limits and ranges."""

from __future__ import annotations

import json
import pickle
import sys
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core.errors import InvalidSettingError
from semistream.generator import SalesPlan
from semistream.spark.sales_options import SalesOptions
from semistream.spark.sales_source import SalesReader, SalesStreamReader

datasource = pytest.importorskip("pyspark.sql.streaming.datasource", reason="limits came with PySpark 4.2")


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1_800_000_000.0

    def __call__(self) -> float:
        return self.seconds


def _options(**given: object) -> SalesOptions:
    return SalesOptions.parse({name: str(value) for name, value in ({"products": 100} | given).items()}, 2)


def _reader(clock: Clock, **given: object) -> SalesStreamReader:
    return SalesStreamReader(_options(**given), clock)


def _next(reader: SalesStreamReader, start: dict[str, Any]) -> dict[str, Any]:
    """Return the end of the next batch as PySpark 4.2 asks for it, with offsets that went through the checkpoint."""
    return json.loads(json.dumps(reader.latestOffset(json.loads(json.dumps(start)), reader.getDefaultReadLimit())))


def _rows(reader: SalesStreamReader | SalesReader, ranges: Any) -> pa.Table:
    return pa.Table.from_batches([batch for part in ranges for batch in reader.read(pickle.loads(pickle.dumps(part)))])


@pytest.mark.parametrize("arrivals", ["constant", "poisson", "bursty", "intermittent"])
def test_a_batch_ends_with_the_last_sale_that_has_arrived(arrivals: str) -> None:
    clock = Clock()
    reader = _reader(clock, arrivals=arrivals, rate=500)
    times = _options(arrivals=arrivals, rate=500).plan.arrival_times()
    offset = reader.initialOffset()
    for seconds in (0.0, 0.25, 0.25, 7.0, 1_000.0):
        clock.seconds = 1_800_000_000.0 + seconds
        offset = _next(reader, offset)
        assert offset["position"] == times.arrived_by(seconds)


def test_a_restarted_stream_goes_on_with_what_piled_up_in_the_meantime() -> None:
    clock = Clock()
    first = _reader(clock, rate=100)
    begin = first.initialOffset()
    clock.seconds += 9.995
    stopped_at = _next(first, begin)
    assert stopped_at["position"] == 1_000
    clock.seconds += 50
    assert _next(_reader(clock, rate=100), stopped_at)["position"] == 6_000


def test_a_backlog_is_taken_in_pieces() -> None:
    clock = Clock()
    reader = _reader(clock, rate=1_000, maxRowsPerBatch=4_000)
    offset = reader.initialOffset()
    clock.seconds += 9.9995
    ends = []
    for _ in range(4):
        offset = _next(reader, offset)
        ends.append(offset["position"])
    assert ends == [4_000, 8_000, 10_000, 10_000]


def test_a_limit_that_spark_sets_is_kept() -> None:
    clock = Clock()
    reader = _reader(clock, rate=1_000, maxRowsPerBatch=4_000)
    offset = reader.initialOffset()
    clock.seconds += 9.9995
    assert reader.latestOffset(offset, datasource.ReadMaxRows(7))["position"] == 7
    assert reader.latestOffset(offset, datasource.ReadAllAvailable())["position"] == 10_000


def test_a_clock_that_is_set_back_does_not_take_sales_back() -> None:
    clock = Clock()
    reader = _reader(clock)
    offset = reader.initialOffset()
    clock.seconds += 5
    offset = _next(reader, offset)
    clock.seconds -= 1_000
    assert _next(reader, offset) == offset


def test_rows_per_batch_does_not_look_at_the_clock_and_rows_end_the_stream() -> None:
    reader = _reader(Clock(), rowsPerBatch=300, rows=1_000)
    offset = reader.initialOffset()
    ends = []
    for _ in range(5):
        offset = _next(reader, offset)
        ends.append(offset["position"])
    assert ends == [300, 600, 900, 1_000, 1_000]


def test_rows_end_a_stream_by_the_clock() -> None:
    clock = Clock()
    reader = _reader(clock, rate=100, rows=150)
    offset = reader.initialOffset()
    clock.seconds += 60
    offset = _next(reader, offset)
    assert offset["position"] == 150
    assert _next(reader, offset) == offset


def test_pyspark_before_4_2_gets_the_same_batches_and_restarts() -> None:
    first = _reader(Clock(), rowsPerBatch=300)
    assert [first.latestOffset()["position"] for _ in range(3)] == [300, 600, 900]
    seen = first.latestOffset()
    again = _reader(Clock(), rowsPerBatch=300)
    assert again.partitions(seen, seen) == []
    assert again.latestOffset() == {**seen, "position": 1_500}


def test_available_now_ends_with_what_had_arrived_when_it_began() -> None:
    clock = Clock()
    reader = _reader(clock, rate=100, maxRowsPerBatch=400)
    offset = reader.initialOffset()
    clock.seconds += 9.995
    reader.prepareForTriggerAvailableNow()
    ends = []
    for _ in range(4):
        clock.seconds += 100
        offset = _next(reader, offset)
        ends.append(offset["position"])
    assert ends == [400, 800, 1_000, 1_000]


def test_available_now_ends_after_one_batch_of_an_endless_stream_without_a_clock() -> None:
    reader = _reader(Clock(), rowsPerBatch=300)
    reader.prepareForTriggerAvailableNow()
    offset = _next(reader, reader.initialOffset())
    assert offset["position"] == 300
    assert _next(reader, offset) == offset


def test_the_progress_report_says_how_far_the_stream_is() -> None:
    clock = Clock()
    reader = _reader(clock, rate=100, maxRowsPerBatch=400)
    assert reader.reportLatestOffset() is None
    offset = reader.initialOffset()
    clock.seconds += 9.995
    _next(reader, offset)
    report = reader.reportLatestOffset()
    assert report is not None
    assert report["position"] == 1_000


@given(start=st.integers(0, 10**10), count=st.integers(0, 3_000), partitions=st.integers(1, 9))
@settings(max_examples=25, deadline=None)
def test_the_ranges_of_a_batch_are_even_and_hold_each_sale_once(start: int, count: int, partitions: int) -> None:
    reader = _reader(Clock(), partitions=partitions)
    begin = reader.initialOffset() | {"position": start}
    ranges = reader.partitions(begin, begin | {"position": start + count})
    assert len(ranges) == min(partitions, count)
    sizes = [part.end - part.start for part in ranges]
    assert max(sizes, default=0) - min(sizes, default=0) <= 1
    if count:
        whole = pa.Table.from_batches(SalesPlan(products=100).sales().rows(start, start + count))
        assert _rows(reader, ranges).equals(whole)


def test_a_stream_that_starts_now_keeps_its_dates_when_its_first_batch_is_repeated() -> None:
    clock = Clock()
    first = _reader(clock, start="now", rowsPerBatch=10)
    begin = first.initialOffset()
    end = _next(first, begin)
    rows = _rows(first, first.partitions(begin, end))
    assert rows["sale_date"][0].as_py() == datetime.fromtimestamp(clock.seconds, UTC)
    clock.seconds += 3_600
    again = _reader(clock, start="now", rowsPerBatch=10)
    assert _rows(again, again.partitions(again.initialOffset(), end)).equals(rows)


def test_a_checkpoint_of_other_options_is_refused() -> None:
    offset = _reader(Clock(), seed=1).initialOffset()
    other = _reader(Clock(), seed=2)
    with pytest.raises(InvalidSettingError, match="differ from those in the checkpoint: restore them, or"):
        other.partitions(offset, offset)
    with pytest.raises(InvalidSettingError, match=r"was not written by semistream-sales: give the query a checkpoint"):
        other.latestOffset({"index": 3})


def test_how_the_stream_is_cut_may_change_between_two_starts() -> None:
    offset = _reader(Clock()).initialOffset()
    cut = {"rows": 10, "rowsPerBatch": 3, "partitions": 1, "seed": 1, "start": "2026-01-01T01:00:00+01:00"}
    assert _next(_reader(Clock(), **cut), offset)["position"] == 3


def test_options_are_read_in_any_case() -> None:
    options = SalesOptions.parse(
        {"PRODUCTS": "7", "rowsperbatch": "5", "stepseconds": "0.5", "ranks": "Sorted", "start": "2027-01-01"}, 3
    )
    assert options.plan == SalesPlan(
        products=7, step_seconds=0.5, ranks="sorted", start=datetime(2027, 1, 1, tzinfo=UTC)
    )
    assert (options.max_rows, options.partitions, options.rows) == (5, 3, None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"products": "many"}, "products must be a whole number of at least 1, but 'many' was given."),
        ({"products": 0}, "products must be a whole number of at least 1, but 0 was given."),
        ({"exponent": "steep"}, "exponent must be a number, but 'steep' was given."),
        ({"exponent": "nan"}, "exponent must be a number of at least 0, but nan was given."),
        ({"ranks": "random"}, "ranks must be 'sorted' or 'shuffled', but 'random' was given."),
        ({"stepSeconds": 0}, "stepSeconds must be a number above 0, but 0.0 was given."),
        ({"offSeconds": -1}, "offSeconds must be a number of at least 0, but -1.0 was given."),
        ({"rate": -1}, "rate must be a number above 0, but -1.0 was given."),
        ({"absent": 7}, "absent must be a share from 0 to 1, but 7.0 was given."),
        ({"start": "soon"}, "start must be a date such as 2026-01-01T08:00:00Z, or now, but 'soon' was given."),
        ({"rows": -1}, "rows must be a whole number of at least 0, but -1 was given."),
        ({"rowsPerBatch": 0}, "rowsPerBatch must be a whole number of at least 1, but 0 was given."),
        ({"partitions": "all"}, "partitions must be a whole number of at least 1, but 'all' was given."),
        (
            {"rowsPerBatch": 5, "maxRowsPerBatch": 5},
            "rowsPerBatch fixes the size of a batch already: leave maxRowsPerBatch out.",
        ),
        (
            {"speed": 5},
            "semistream-sales has no option 'speed': choose from absent, arrivals, exponent, maxRowsPerBatch, "
            "offSeconds, onSeconds, partitions, products, ranks, rate, rows, rowsPerBatch, seed, start, stepSeconds, "
            "stride.",
        ),
    ],
)
def test_a_senseless_option_is_refused_by_its_name(given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidSettingError) as error:
        _options(**given)
    assert str(error.value) == message


def test_the_number_of_products_must_be_given() -> None:
    with pytest.raises(InvalidSettingError, match="needs the option products"):
        SalesOptions.parse({}, 1)


def test_a_batch_read_needs_an_end_and_a_date() -> None:
    with pytest.raises(InvalidSettingError, match="give the option rows"):
        SalesReader(_options())
    with pytest.raises(InvalidSettingError, match="start can be 'now' only in a stream"):
        SalesReader(_options(rows=5, start="now"))


@pytest.mark.parametrize("error", [EOFError(), BrokenPipeError(), ValueError("a fault of the reader")])
def test_a_reader_whose_driver_is_gone_says_nothing_more(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    reader = _reader(Clock())
    try:
        raise error
    except type(error):
        reader.stop()
    sys.excepthook(type(error), error, None)
    assert ("a fault of the reader" in capsys.readouterr().err) == isinstance(error, ValueError)
    if not isinstance(error, ValueError):
        sys.stderr.close()
