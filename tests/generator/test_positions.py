"""A generated stream can be entered at any position, and goes on there as if it had been read from the beginning."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from goodness import rank_deviation
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core.errors import InvalidSettingError
from semistream.generator import (
    AbsentKeys,
    BurstyArrivals,
    ConstantArrivals,
    GeneratedArrivals,
    IntermittentArrivals,
    PoissonArrivals,
    SalesPlan,
    Workload,
    ZipfKeys,
)
from semistream.generator.randomness import UniformNumbers
from semistream.generator.sales import SALES_SCHEMA
from semistream.generator.sales_plan import ARRIVALS
from semistream.generator.stream_keys import MasterKeySource
from semistream_lab.workload import DriftingKeys, record, replay

FAR = 10**12
STREAM_TUPLES = 60_000

KEYS: dict[str, Callable[[], MasterKeySource]] = {
    "sorted": lambda: ZipfKeys(5_000, 0.9, seed=3),
    "shuffled": lambda: ZipfKeys(5_000, 0.9, seed=3, ranks="shuffled", stride=7),
    "absent": lambda: AbsentKeys(ZipfKeys(5_000, 0.9, seed=3, stride=2), 0.3, seed=3),
    "jumping": lambda: DriftingKeys(ZipfKeys(5_000, 0.9, seed=3), 1_000),
    "drifting": lambda: DriftingKeys(ZipfKeys(5_000, 0.9, seed=3), 1_000, drift_share=0.4),
}
ARRIVAL_TIMES: dict[str, Callable[[], GeneratedArrivals]] = {
    "constant": lambda: ConstantArrivals(300.0),
    "poisson": lambda: PoissonArrivals(300.0, seed=1),
    "intermittent": lambda: IntermittentArrivals(300.0, 0.7, 2.3),
    "bursty": lambda: BurstyArrivals(0.01, seed=1),
    "bursty with few sources": lambda: BurstyArrivals(0.01, seed=1, sources=2),
    "bursty and rare": lambda: BurstyArrivals(0.01, seed=1, mean_rate=17.3),
}
key_sources = pytest.mark.parametrize("make", KEYS.values(), ids=KEYS.keys())
arrival_times = pytest.mark.parametrize("make", ARRIVAL_TIMES.values(), ids=ARRIVAL_TIMES.keys())
places = st.lists(st.integers(0, STREAM_TUPLES - 1), min_size=1, max_size=6)


@given(places=st.lists(st.integers(0, 2_000), min_size=1, max_size=8))
@settings(max_examples=30, deadline=None)
def test_random_numbers_follow_from_their_position(places: list[int]) -> None:
    whole = UniformNumbers("test", 1).take(2_010)
    numbers = UniformNumbers("test", 1)
    for place in places:
        numbers.seek(place)
        np.testing.assert_array_equal(numbers.take(10), whole[place : place + 10])


@key_sources
@given(places=places)
@settings(max_examples=10, deadline=None)
def test_keys_follow_from_their_position(make: Callable[[], MasterKeySource], places: list[int]) -> None:
    whole = make().draw(STREAM_TUPLES)
    source = make()
    for place in places:
        source.seek(place)
        drawn = source.draw(500)
        np.testing.assert_array_equal(drawn[: STREAM_TUPLES - place], whole[place : place + 500])


@arrival_times
@given(places=places)
@settings(max_examples=10, deadline=None)
def test_arrivals_follow_from_their_position(make: Callable[[], GeneratedArrivals], places: list[int]) -> None:
    whole = make().take(STREAM_TUPLES)
    source = make()
    for place in places:
        source.seek(place)
        taken = source.take(500)
        np.testing.assert_array_equal(taken[: STREAM_TUPLES - place], whole[place : place + 500])


@arrival_times
def test_arrivals_never_fall_at_a_far_position(make: Callable[[], GeneratedArrivals]) -> None:
    source = make()
    source.seek(FAR)
    moments = source.take(200_000)
    assert (np.diff(moments) >= 0).all()
    assert FAR / moments[0] == pytest.approx(source.mean_rate, rel=1e-3)


@arrival_times
@given(expected=st.floats(-10, 20_000))
@settings(max_examples=30, deadline=None)
def test_as_many_have_arrived_as_have_a_time_until_then(make: Callable[[], GeneratedArrivals], expected: float) -> None:
    source = make()
    seconds = expected / source.mean_rate
    moments = source.take(100_000)
    assert moments[-1] > seconds
    assert source.arrived_by(seconds) == np.searchsorted(moments, seconds, side="right")


@arrival_times
@given(place=st.integers(0, 10**13))
@settings(max_examples=15, deadline=None)
def test_by_the_time_of_a_tuple_it_and_all_before_it_have_arrived(
    make: Callable[[], GeneratedArrivals], place: int
) -> None:
    source = make()
    source.seek(place)
    moment = float(source.take(1)[0])
    arrived = source.arrived_by(moment)
    assert arrived > place
    source.seek(arrived - 1)
    assert source.take(1)[0] == moment
    assert source.take(1)[0] > moment


def test_the_blocks_of_poisson_arrivals_take_as_long_as_sums_of_exponential_gaps() -> None:
    block, blocks = 16_384, 1_024
    source = PoissonArrivals(1.0, seed=5)
    ends = [0.0]
    for number in range(1, blocks + 1):
        source.seek(number * block - 1)
        ends.extend(source.take(1).tolist())
    for together in (1, 4, 32):
        lengths = np.diff(ends[::together])
        assert lengths.mean() == pytest.approx(together * block, rel=4 / (block * blocks) ** 0.5)
        assert lengths.var() == pytest.approx(together * block, rel=4 * (2 / len(lengths)) ** 0.5)


def test_the_gaps_between_poisson_arrivals_are_exponential_at_a_far_position() -> None:
    source = PoissonArrivals(0.5, seed=5)
    source.seek(FAR)
    gaps = np.sort(np.diff(source.take(100_000)))
    expected = 1 - np.exp(-gaps / 2)
    assert np.abs(expected - np.arange(len(gaps)) / len(gaps)).max() < 1.95 / len(gaps) ** 0.5


def test_two_windows_of_bursty_arrivals_together_have_exactly_the_mean_number_of_tuples() -> None:
    source = BurstyArrivals(1.0, seed=6)
    for pairs in (1, 2, 10**6):
        end = pairs * 2 * 16_384
        assert source.arrived_by(end - 1e-6) == pytest.approx(end * 1023, abs=1)


def test_a_window_of_bursty_arrivals_is_followed_by_its_mirror() -> None:
    counts = np.bincount(BurstyArrivals(1.0, seed=6, sources=4).take(4 * 16_384 * 15).astype(np.int64))
    first, mirror, other = counts[:16_384], counts[16_384 : 2 * 16_384], counts[2 * 16_384 : 3 * 16_384]
    assert (first + mirror == 30).all()
    assert abs(np.corrcoef(first, other)[0, 1]) < 0.1


def test_more_sources_than_can_be_held_are_refused() -> None:
    with pytest.raises(InvalidSettingError, match=r"^sources must be at most 16, but 17 was given\.$"):
        BurstyArrivals(1.0, seed=1, sources=17)


@pytest.mark.parametrize("arrivals", ARRIVALS)
@given(
    start=st.one_of(st.integers(0, 10**5), st.integers(10**9, FAR)),
    cuts=st.lists(st.integers(0, 5_000), max_size=5),
    batch_rows=st.integers(100, 10_000),
)
@settings(max_examples=15, deadline=None)
def test_any_cut_into_ranges_gives_the_same_sales(arrivals: str, start: int, cuts: list[int], batch_rows: int) -> None:
    plan = SalesPlan(products=10_000, stride=2, absent=0.1, rate=700.0, arrivals=arrivals)  # type: ignore[arg-type]
    borders = np.cumsum([start, *cuts, 1]).tolist()
    sales = plan.sales()
    ranges = list(pairwise(borders))
    parts = [batch for first, last in reversed(ranges) for batch in reversed(list(sales.rows(first, last, batch_rows)))]
    whole = pa.Table.from_batches(plan.sales().rows(start, borders[-1], 10**6), SALES_SCHEMA)
    assert whole["sale_id"].to_pylist() == list(range(start + 1, borders[-1] + 1))
    assert pa.Table.from_batches(reversed(parts), SALES_SCHEMA).equals(whole)


def test_sales_at_a_far_position_follow_the_law_of_their_keys() -> None:
    plan = SalesPlan(products=5_000, exponent=1.0, ranks="sorted")
    table = pa.Table.from_batches(plan.sales().rows(FAR, FAR + 400_000))
    law = ZipfKeys(5_000, 1.0, seed=1).probabilities()
    assert abs(rank_deviation(table["product_id"].to_numpy(), law)) < 4.5


def test_a_workload_numbers_its_tuples_by_their_position() -> None:
    workload = Workload(ZipfKeys(100, 1.0, seed=1), ConstantArrivals(2.0))
    workload.seek(1_000)
    [batch] = workload.batches(5, 5)
    assert [int.from_bytes(payload, "little") for payload in batch["payload"].to_pylist()] == [*range(1_000, 1_005)]


def test_a_recorded_stream_has_no_positions(tmp_path: Path) -> None:
    record(Workload(ZipfKeys(100, 1.0, seed=1)), tmp_path / "trace", 10)
    with pytest.raises(InvalidSettingError, match=r"only be read from its beginning: replay it instead\.$"):
        replay(tmp_path / "trace").seek(5)


@pytest.mark.parametrize(("start", "end"), [(-1, 4), (5, 4)])
def test_a_range_that_ends_before_it_begins_is_refused(start: int, end: int) -> None:
    with pytest.raises(InvalidSettingError, match="must be a whole number of at least"):
        SalesPlan(products=10).sales().rows(start, end)
