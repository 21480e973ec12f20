"""The kinds of measurement that claims about HYBRIDJOIN and X-HYBRIDJOIN need, on small tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.errors import InvalidSettingError
from semistream.generator import ConstantArrivals
from semistream_lab.experiments.measuring.at_arrival_rate import Ticks
from semistream_lab.experiments.measuring.generator import hurst_exponent
from semistream_lab.experiments.measuring.kinds import run
from semistream_lab.experiments.measuring.page_reads import shares_from_each
from semistream_lab.experiments.measuring.read_log import ReadLog, logged
from semistream_lab.experiments.point import Point

SMALL = Point(algorithm="hybridjoin", master_rows=40_000, memory_bytes=1_000_000, queues=3.0)


def measured(**changes: Any) -> dict[str, float]:
    return {name: float(value) for name, value in run(replace(SMALL, **changes)).items() if value is not None}


def options(**named: str | float) -> tuple[tuple[str, str | float], ...]:
    return tuple(sorted(named.items()))


# Reads


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=60))
@settings(deadline=None, derandomize=True)
def test_the_least_gap_is_the_smallest_distance_of_two_reads_of_one_page_group(reads: list[tuple[int, int]]) -> None:
    log, entered, last, gaps = ReadLog(), 0, dict[int, int](), []
    for page_group, step in reads:
        entered += step
        log.page_groups.append(page_group)
        log.answered.append(1)
        log.entered.append(entered)
        if page_group in last:
            gaps.append(entered - last[page_group])
        last[page_group] = entered
    assert log.min_gap() == (min(gaps) if gaps else None)
    assert log.by_page_group(6)[0].sum() == len(log) == len(reads)


def test_a_logged_recipe_does_what_it_did_before() -> None:
    recipe, _ = logged(ALGORITHMS["meshjoin"])
    assert recipe == replace(ALGORITHMS["meshjoin"], page_choice=recipe.page_choice)
    plain = measured(kind="rate")
    parts = [measured(kind="page-use", options=options(parts=4, part=part)) for part in (1, 2, 3, 4)]
    assert sum(part["uses_per_page"] for part in parts) > 0
    assert plain["service_rate"] > 0


def test_matches_along_a_sorted_table_fall_and_along_a_uniform_stream_do_not() -> None:
    first, last = (measured(kind="page-use", options=options(parts=4, part=part)) for part in (1, 4))
    assert first["uses_per_page"] > 5 * last["uses_per_page"]
    assert first["match_probability"] > last["match_probability"]
    even = [measured(kind="page-use", exponent=0.0, options=options(parts=4, part=part)) for part in (1, 4)]
    assert even[0]["uses_per_page"] == pytest.approx(even[1]["uses_per_page"], rel=0.1)


def test_the_matches_of_all_parts_are_all_matches() -> None:
    parts = [measured(kind="page-use", options=options(parts=5, part=part)) for part in range(1, 6)]
    total = sum(part["match_probability"] * part["page_groups"] for part in parts)
    assert total == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["zipf", "blocks", "one by one", "one key", "half"])
def test_on_no_input_does_hybridjoin_break_its_theorems(name: str) -> None:
    result = measured(kind="hard-inputs", options=options(input=name))
    assert result["reads_in_vain"] == 0
    assert result["reads_per_tuple"] <= 1
    assert result.get("min_gap_queues", 1.0) >= 1
    # With equal reads and equal queues HYBRIDJOIN never reads more often than MESHJOIN.
    reads_per_tuple = {name: result[f"{name}_reads"] / result[f"{name}_tuples"] for name in ("hybridjoin", "meshjoin")}
    assert reads_per_tuple["hybridjoin"] <= reads_per_tuple["meshjoin"] * 1.05


def test_blocks_are_as_hard_as_can_be() -> None:
    result = measured(kind="hard-inputs", options=options(input="blocks"))
    assert result["hybridjoin_reads"] / result["hybridjoin_tuples"] == pytest.approx(
        result["meshjoin_reads"] / result["meshjoin_tuples"], rel=0.1
    )


def test_only_meshjoin_reads_what_nobody_asks_for() -> None:
    result = measured(kind="hard-inputs", options=options(input="half"))
    assert result["hybridjoin_unreferenced_reads"] == 0
    assert result["meshjoin_unreferenced_reads"] > 0.3 * result["meshjoin_reads"]


def test_a_trickle_costs_a_read_a_tuple() -> None:
    result = measured(kind="hard-inputs", options=options(input="trickle"))
    assert result["reads_per_tuple"] == pytest.approx(1.0, abs=0.01)
    assert "meshjoin_reads" not in result


def test_an_unknown_input_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="no hard input 'easy'"):
        measured(kind="hard-inputs", options=options(input="easy"))


# Waiting

FLOW: dict[str, Any] = {"kind": "arrivals", "options": options(warm_up=20, seconds=20)}


def test_inlj_keeps_up_below_its_rate_and_falls_behind_above() -> None:
    below = measured(algorithm="inlj", arrival_rate=50.0, **FLOW)
    above = measured(algorithm="inlj", arrival_rate=500.0, **FLOW)
    assert below["service_rate"] == pytest.approx(50, rel=0.2)
    assert below["mean_wait_seconds"] < 0.05
    assert above["busy_share"] == pytest.approx(1.0, abs=0.01)
    # After 30 s on average, 500 a second have arrived and 157 left: the tuple that leaves came when these arrived.
    assert above["mean_wait_seconds"] == pytest.approx(30 * (1 - 157 / 500), rel=0.05)


def test_a_lonely_tuple_waits_for_one_read() -> None:
    result = measured(kind="arrivals", arrival_rate=1.0, options=options(warm_up=100, seconds=900))
    assert result["tuples_per_read"] == pytest.approx(1.0, abs=0.05)
    assert result["mean_wait_seconds"] == pytest.approx(0.0055 + 65_280 / 10e6 + 0.0006, rel=0.02)


def test_meshjoin_waits_for_its_part_before_each_read() -> None:
    result = measured(
        algorithm="meshjoin",
        arrival_rate=20.0,
        kind="arrivals",
        options=options(rounds=1, warm_up=0, seconds=0, tick_tuples=8),
    )
    assert result["idle_seconds_per_read"] == pytest.approx(result["taken_per_read"] / 20, rel=0.05)
    assert result["busy_share"] < 0.1
    assert result["processing_seconds"] == pytest.approx(result["mean_wait_seconds"] * result["busy_share"])


def test_in_a_silence_hybridjoin_goes_on_and_meshjoin_does_not() -> None:
    silent = {"kind": "arrivals", "arrival_rate": 200.0}
    gaps = options(arrivals="intermittent", on_seconds=5, off_seconds=600)
    hybrid = measured(options=gaps, **silent)
    mesh = measured(algorithm="meshjoin", options=gaps, **silent)
    assert hybrid["left_waiting"] == 0
    assert hybrid["tuples"] == 1000
    assert mesh["left_waiting"] > 0


def test_bursts_queue_up_before_a_busy_join() -> None:
    result = measured(arrival_rate=300.0, kind="arrivals", options=options(arrivals="bursty", warm_up=5, seconds=20))
    assert result["max_backlog_tuples"] > 300 * 0.016  # more than arrive in a read on average


def test_ticks_hand_tuples_over_late_but_never_early() -> None:
    moments, ticks = ConstantArrivals(7.0).take(100), Ticks(ConstantArrivals(7.0), 0.5).take(100)
    assert (ticks >= moments).all()
    assert (ticks - moments < 0.5).all()
    assert np.allclose(ticks % 0.5, 0)


def test_waiting_is_measured_on_the_model_clock_only() -> None:
    with pytest.raises(InvalidSettingError, match="--clock model"):
        measured(kind="arrivals", clock="wall", arrival_rate=10.0)


# The generator, and the pinned part


def test_the_share_of_sales_follows_the_law() -> None:
    shares = [
        measured(kind="generator", master_rows=2000, options=options(shows="share", products=share))["sales_share"]
        for share in (0.2, 1.0)
    ]
    harmonic = np.cumsum(1 / np.arange(1, 2001))
    assert shares == pytest.approx([harmonic[399] / harmonic[-1], 1.0], abs=0.005)


def test_frequencies_fall_with_the_rank() -> None:
    once, twice = (
        measured(kind="generator", master_rows=2000, options=options(shows="frequency", rank=rank))["frequency"]
        for rank in (1, 2)
    )
    assert once == pytest.approx(2 * twice, rel=0.02)
    assert "frequency" not in measured(
        kind="generator", master_rows=2000, options=options(shows="frequency", rank=5000)
    )


def test_arrivals_are_bursty_in_windows_of_any_length() -> None:
    result = measured(kind="generator", options=options(shows="arrivals", place=3, window=16))
    assert result["hurst_exponent"] > 0.8
    assert result["dispersion"] > 100
    assert 0 <= result["tuples_per_step"] <= 2046


def test_the_hurst_exponent_of_noise_is_a_half() -> None:
    noise = np.random.default_rng(1).poisson(100, 1 << 15).astype(np.float64)
    assert hurst_exponent(noise, 9) == pytest.approx(0.5, abs=0.05)


def test_the_generator_shows_only_what_it_knows() -> None:
    with pytest.raises(InvalidSettingError, match="choose share, frequency or arrivals"):
        measured(kind="generator", options=options(shows="colours"))


def test_the_pinned_part_serves_what_its_hits_say() -> None:
    result = measured(algorithm="x-hybridjoin", kind="pinned-part", options=options(iterations=4000))
    assert result["pinned_tuples"] == pytest.approx(result["cache_hits"] / result["iterations"] * 4000)
    assert result["pinned_tuples"] > 0


# Reads that begin at a key

FROM_KEY = options(partitions="from-key")
USUAL_READS: dict[str, Any] = {"memory_bytes": 4_000_000}
"""Memory that is enough for reads of the papers' size, which pages of any size come to."""


@pytest.mark.parametrize("kind", ["rate", "disk-bound", "page-reads", "pinned-part", "handover"])
def test_reads_that_begin_at_a_key_are_an_option_of_every_kind(kind: str) -> None:
    algorithm = {"page-reads": "hybridjoin-pq", "pinned-part": "x-hybridjoin", "handover": "op-cachejoin"}
    changes = {"kind": kind, "algorithm": algorithm.get(kind, "hybridjoin"), "exponent": 0.5, **USUAL_READS}
    aligned, from_key = (measured(options=named, **changes) for named in ((), FROM_KEY))
    assert aligned == measured(options=options(partitions="aligned"), **changes) | {
        name: value for name, value in aligned.items() if name.startswith("wall")
    }
    assert from_key != aligned
    assert from_key["waiting_slots"] == pytest.approx(aligned["waiting_slots"], abs=2)


@pytest.mark.parametrize("page_rows", [1, 10, 68])
def test_a_read_from_a_key_brings_as_much_whatever_the_pages_are(page_rows: int) -> None:
    fine = measured(options=options(partitions="from-key", page_rows=page_rows))
    aligned = measured()
    read_bytes = [result["bytes_read"] / result["read_requests"] for result in (fine, aligned)]
    assert read_bytes[0] == pytest.approx(read_bytes[1], rel=0.05)
    assert (fine == measured(options=FROM_KEY) | {"wall_seconds": fine["wall_seconds"]}) == (page_rows == 1)


def test_at_an_arrival_rate_reads_may_begin_at_a_key() -> None:
    flow = {"kind": "arrivals", "arrival_rate": 2000.0}
    results = [
        measured(options=options(warm_up=20, seconds=20, **named), **flow) for named in ({}, {"partitions": "from-key"})
    ]
    assert results[0]["tuples_per_read"] != results[1]["tuples_per_read"]


@pytest.mark.parametrize("name", ["zipf", "blocks", "one by one", "one key", "half"])
def test_on_no_input_do_reads_that_begin_at_a_key_break_the_theorems(name: str) -> None:
    result = measured(kind="hard-inputs", options=options(input=name, partitions="from-key"))
    assert result["reads_in_vain"] == 0
    assert result["reads_per_tuple"] <= 1
    assert result.get("min_gap_queues", 1.0) >= 1
    if name == "half":
        assert result["hybridjoin_unreferenced_reads"] == 0
    aligned = measured(kind="hard-inputs", options=options(input=name))
    for column in ("meshjoin_reads", "inlj_reads", "page_groups", "waiting_slots"):
        assert result[column] == aligned[column]


def test_reads_along_the_table_count_where_they_begin() -> None:
    parts = [
        measured(kind="page-use", options=options(parts=5, part=part, partitions="from-key"), **USUAL_READS)
        for part in range(1, 6)
    ]
    assert sum(part["match_probability"] * part["page_groups"] for part in parts) == pytest.approx(1.0)
    aligned = measured(kind="page-use", options=options(parts=5, part=1), **USUAL_READS)
    assert parts[0]["page_groups"] == aligned["page_groups"]
    assert parts[0]["reads_per_page_group"] != aligned["reads_per_page_group"]


@pytest.mark.parametrize("algorithm", ["meshjoin", "inlj", "ssij", "partitioned", "demandjoin"])
def test_what_loads_nothing_by_a_key_takes_no_notice_of_the_option(algorithm: str) -> None:
    aligned, from_key = (
        measured(algorithm=algorithm, memory_bytes=4_000_000, tuples=1000, queues=1.0, options=named)
        for named in ((), FROM_KEY)
    )
    assert {**aligned, "wall_seconds": 0.0} == {**from_key, "wall_seconds": 0.0}


def test_the_share_of_a_read_from_a_page_on_is_that_of_all_its_pages() -> None:
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    assert shares_from_each(shares, 2).tolist() == pytest.approx([0.7, 0.5, 0.3, 0.1])
    assert shares_from_each(shares, 1).tolist() == pytest.approx(shares.tolist())
    assert shares_from_each(shares, 9).tolist() == pytest.approx([1.0, 0.6, 0.3, 0.1])
