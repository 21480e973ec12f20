"""What the live page tells: whether a pipeline keeps up, where time goes, in memory that does not grow."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_batches import PARTS, START, batch, counts, run_of

from semistream.pipeline.live.about import AboutPipeline
from semistream.pipeline.live.backlog import backlog_of
from semistream.pipeline.live.board import LiveBoard
from semistream.pipeline.live.durations import short_duration
from semistream.pipeline.live.frequent_keys import FrequentKeys
from semistream.pipeline.live.history import History
from semistream.pipeline.live.master_watch import MasterFacts
from semistream.pipeline.live.memory_curve import MemoryCurve
from semistream.pipeline.live.page import page_answer
from semistream.pipeline.live.points import Point, together
from semistream.pipeline.live.server import json_answer
from semistream.pipeline.live.time_split import TimeSplit
from semistream.pipeline.live.verdict import Situation, verdict_on
from semistream.spark.batch_progress import MirrorNumbers
from semistream.spark.statistics import CACHE_SIZES


def about(**changes: Any) -> AboutPipeline:
    default: dict[str, Any] = {
        "name": "sales",
        "source": "json incoming",
        "sink": "parquet warehouse",
        "trigger_seconds": 0.0,
        "available_now": False,
        "max_batch_seconds": 600.0,
        "max_master_age_seconds": None,
        "tells_keys": False,
    }
    return AboutPipeline(**{**default, **changes})


def point(number: int, **changes: Any) -> Point:
    """Return a batch that began at a second and took half of it."""
    return Point.of(batch(number, began=START + number, **changes), 0.0)


POINT = point(0)


def situation(points: list[Point], **changes: Any) -> Situation:
    default: dict[str, Any] = {
        "points": points,
        "backlog": backlog_of(points),
        "trigger_seconds": 0.0,
        "available_now": False,
        "running_seconds": 0.0,
        "complaints": (),
        "gain_of_twice": None,
    }
    return Situation(**{**default, **changes})


def told(**changes: Any) -> Any:
    """Return the counts of an operator that took some of the batch's time."""
    return (counts(**changes),)


def test_the_parts_of_a_batch_are_its_whole_time() -> None:
    one = counts(seconds=0.2, task_seconds=0.3, read_seconds=0.1, input_seconds=0.06, output_seconds=0.04)
    made = batch(seconds=1.0, add_batch_seconds=0.8, planning_seconds=0.1, commit_seconds=0.05, enrichments=(one,))
    split = TimeSplit.of(made)
    assert split.seconds == pytest.approx(1.0)
    assert split.reads == pytest.approx(0.05), "two workers read side by side"
    assert split.python == pytest.approx(0.1)
    assert split.source == pytest.approx(0.03)
    assert (split.planning, split.commit) == (0.1, 0.05)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(*[st.floats(0, 10)] * 4, st.integers(1, 8), st.integers(1, 8)).map(
            lambda v: counts(
                seconds=v[0],
                task_seconds=v[0] + v[1],
                read_seconds=min(v[2], v[0]),
                input_seconds=v[3],
                tasks=v[4],
                processes=v[5],
            )
        ),
        max_size=3,
    ),
    st.floats(0.001, 20),
)
def test_no_part_is_negative_and_none_is_longer_than_the_batch(operators: list[Any], add_batch: float) -> None:
    made = batch(
        seconds=add_batch + 0.1, add_batch_seconds=add_batch, commit_seconds=0.05, enrichments=tuple(operators)
    )
    split = TimeSplit.of(made)
    assert split.seconds == pytest.approx(made.seconds)
    assert min(split.source, split.reads, split.python, split.sink) >= 0


@settings(deadline=None)
@given(st.integers(0, 700), st.integers(1, 20))
def test_history_loses_no_batch_and_stays_small(batches: int, half: int) -> None:
    history = History(2 * half, 7)
    for number in range(batches):
        history.add(replace(POINT, began=number, ended=number + 0.5, rows_in=number))
    assert len(history.whole) <= 2 * half
    assert len(history.recent) == min(7, batches)
    assert sum(one.rows_in for one in history.whole) == sum(range(batches))
    assert sum(one.batches for one in history.whole) == batches
    ends = [one.ended for one in history.whole]
    assert ends == sorted(ends)
    if batches:
        assert (together(history.whole).began, together(history.whole).ended) == (0, batches - 0.5)


@pytest.mark.parametrize(
    ("backlogs", "trend", "drains"),
    [
        ([1_100, 1_300, 1_500, 1_700, 1_900], "growing", None),
        ([100, 300, 500, 700, 900], "steady", None),  # the next batch takes all
        ([10_000, 8_000, 6_000, 4_000, 2_000], "shrinking", 1.0),
        ([5_000, 5_003, 4_999, 5_002, 5_000], "steady", None),
        ([900, 500, 300, 100, 0], "none", 0.0),
        ([700, 800], "unknown", None),
    ],
)
def test_the_backlog_has_a_trend(backlogs: list[int], trend: str, drains: float | None) -> None:
    found = backlog_of([point(number, backlog=value) for number, value in enumerate(backlogs)])
    assert found is not None
    assert (found.trend, found.amount) == (trend, backlogs[-1])
    assert found.drain_seconds == (pytest.approx(drains) if drains is not None else None)


def test_a_backlog_of_files_is_told_where_rows_are_not_known() -> None:
    points = [point(number, backlog_files=2 * number, backlog_bytes=100) for number in range(6)]
    found = backlog_of(points)
    assert found is not None
    assert (found.unit, found.trend, found.amount) == ("files", "growing", 10)
    assert verdict_on(situation(points)).headline == "Falls behind: the backlog grows by 2 files a second."
    assert backlog_of([point(number) for number in range(6)]) is None


@pytest.mark.parametrize(
    ("spent", "name"),
    [
        ({"enrichments": told(seconds=0.28, task_seconds=0.56, read_seconds=0.54)}, "reads of the master table"),
        ({"enrichments": told(seconds=0.28, task_seconds=0.56, read_seconds=0.02)}, "the join in Python"),
        (
            {"enrichments": told(seconds=0.01, task_seconds=0.02, input_seconds=0.56)},
            "waiting for rows from the source",
        ),
        ({"enrichments": told(seconds=0.01, task_seconds=0.02)}, "the sink and Spark's own work"),
        ({"planning_seconds": 0.4, "add_batch_seconds": 0.05}, "planning and finding out what is new"),
        ({"commit_seconds": 0.4, "add_batch_seconds": 0.05}, "writing the checkpoint"),
    ],
)
def test_the_verdict_says_what_holds_a_pipeline_back(spent: dict[str, Any], name: str) -> None:
    points = [point(number, backlog=1_000 * number, **spent) for number in range(8)]
    said = verdict_on(situation(points))
    assert said.level == "bad"
    assert said.headline == "Falls behind: the backlog grows by 1,000 rows a second."
    assert name in said.detail


def test_the_verdict_knows_the_other_situations() -> None:
    quiet = [point(number, backlog=0) for number in range(8)]
    assert verdict_on(situation([])).headline == "Waiting for the first batch to end."
    assert verdict_on(situation(quiet)).level == "good"
    assert "Busy 53% of the time" in verdict_on(situation(quiet)).detail
    shrinking = [point(number, backlog=100_000 - 1_000 * number) for number in range(8)]
    assert verdict_on(situation(shrinking)).headline == "Catching up: the backlog will be gone in about 1 min 33 s."
    unknown = [point(number) for number in range(8)]
    assert verdict_on(situation(unknown)).headline == "Keeps up."
    full = [point(number, seconds=1.0) for number in range(8)]
    assert verdict_on(situation(full)).headline.startswith("Busy all the time")
    late = [point(number, seconds=1.0, backlog=0) for number in range(8)]
    kept = verdict_on(situation(late, trigger_seconds=0.5))
    assert (kept.level, "A batch takes 1 s, longer than the 0.50 s between" in kept.detail) == ("good", True)
    slow = verdict_on(situation(full, trigger_seconds=0.5))
    assert slow.headline == "Too slow for its trigger: a batch takes 1 s, and one is due every 0.50 s."
    first = verdict_on(situation(full[:1], trigger_seconds=0.5))
    assert first.level == "busy"
    assert first.headline.startswith("Starting: the first batch took 1 s")
    assert "0.50 s of the 10 s between triggers" in verdict_on(situation(quiet, trigger_seconds=10.0)).detail
    stuck = verdict_on(situation(quiet, running_seconds=45.0))
    assert stuck.headline == "The batch that runs now lasts 45 s already, and they take 0.50 s as a rule."
    assert verdict_on(situation(quiet, available_now=True)).headline.startswith("Working off what was there")
    ill = verdict_on(situation(quiet, complaints=("The master table is too old.",)))
    assert (ill.level, ill.headline) == ("bad", "The master table is too old.")


def test_reads_that_memory_cannot_save_are_not_blamed_on_memory() -> None:
    spent = {"seconds": 0.28, "task_seconds": 0.56, "read_seconds": 0.54}
    points = [point(number, backlog=1_000 * number, enrichments=told(**spent)) for number in range(8)]
    assert "Twice the memory would save few of them" in verdict_on(situation(points, gain_of_twice=0.01)).detail
    for gain in (0.2, None):
        assert "More memory lets the cache answer more." in verdict_on(situation(points, gain_of_twice=gain)).detail


def test_the_curve_goes_through_todays_point_and_knows_when_it_knows_nothing() -> None:
    curve = MemoryCurve()
    shares = [share**0.5 for share in CACHE_SIZES]
    one = counts(
        tuples_in=20_000,
        cache_hits=12_000,
        shadow_hits=1_000,
        budget_bytes=64_000_000,
        memory_parts=PARTS,
        hits_by_size=[int(10_000 * share) for share in shares],
        cached_rows=2_000,
    )
    curve.add(counts(tuples_in=20_000, budget_bytes=64_000_000))
    assert curve.curve() is None, "no cache has told anything"
    for _ in range(70):
        curve.add(one)
    found = curve.curve()
    assert found is not None
    assert not found.knows_twice, "next to nothing has been overwritten"
    assert (found.points[-1], curve.gain_of_twice) == (found.today, None)
    curve.add(replace(one, cache_evictions=10_000, cached_rows=2_000))
    found = curve.curve()
    assert found is not None
    assert found.knows_twice
    assert (found.today.memory_bytes, found.today.hit_rate) == (64_000_000, pytest.approx(0.6, abs=0.001))
    rates = [each.hit_rate for each in found.points]
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(0.65, abs=0.001)
    assert found.points[-1].memory_bytes == 2_500_000 + 2 * 61_500_000


def test_frequent_keys_are_bounded_and_old_ones_fade() -> None:
    keys = FrequentKeys(batches_of_a_half_life=10)
    keys.add([("old", 1_000)])
    for number in range(200):
        keys.add([("new", 20), *((f"rare {number} {place}", 1) for place in range(20))])
    assert keys.top()[0][0] == "new"
    assert len(keys._counts) <= 800


def _held_bytes(board: LiveBoard) -> int:
    """Return about how much a board holds, as the length of all its objects one after the other."""
    return sum(len(pickle.dumps(part)) for part in (board._history, board._operators, board._metrics, board._last))


def test_ten_thousand_batches_stay_under_two_megabytes_and_in_the_same_memory() -> None:
    board = LiveBoard(about(tells_keys=True))
    batches = run_of(10_000, keys=20)
    for _ in range(2_000):
        board.add(next(batches))
    early_bytes, early_resident = _held_bytes(board), psutil.Process().memory_info().rss
    for one in batches:
        board.add(one)
    assert board.state()["totals"]["batches"] == 10_000
    assert _held_bytes(board) < 1.2 * early_bytes + 20_000
    assert psutil.Process().memory_info().rss < early_resident + 5_000_000
    assert len(json_answer(board.state()).body) + len(page_answer().body) < 2_000_000


def test_the_figures_of_the_page_are_those_of_the_json_lines() -> None:
    board = LiveBoard(about())
    rows_in = rows_out = 0
    for one in run_of(30):
        board.add(one)
        rows_in, rows_out = rows_in + one.rows_in, rows_out + (one.rows_out or 0)
    state = json.loads(json_answer(board.state()).body)
    assert state["last"] == json.loads(json.dumps(one.rows()))
    assert (state["totals"]["rows_in"], state["totals"]["rows_out"]) == (rows_in, rows_out)
    latest = dict(zip(state["columns"], state["recent"][-1], strict=True))
    (line,) = state["last"]
    for name, of_line in (("rows_in", "batch_rows_in"), ("cache_hits", "cache_hits"), ("backlog", "backlog")):
        assert latest[name] == line[of_line]


def test_numbers_that_json_does_not_have_break_nothing() -> None:
    board = LiveBoard(about())
    board.add(batch(enrichments=(counts(seconds=math.nan),)))
    assert json.loads(json_answer({"last": board.state()["last"]}).body)["last"][0]["seconds"] is None


def test_health_knows_long_batches_and_old_masters() -> None:
    now = [START]
    masters = [MasterFacts("products", "/products", created=START - 100)]
    board = LiveBoard(about(max_batch_seconds=60.0, max_master_age_seconds=3_600.0), lambda: masters, lambda: now[0])
    assert board.complaints() == []
    board.note_running(True)
    now[0] += 59
    board.note_running(True)
    assert board.complaints() == []
    now[0] += 2
    assert board.complaints() == ["A batch has been running for 1 min 1 s, longer than 1 min."]
    assert board.state()["verdict"]["level"] == "bad"
    board.add(batch(seconds=61.0))
    assert board.complaints() == ["The last batch took 1 min 1 s, longer than 1 min."]
    now[0] += 61
    assert board.complaints() == [], "no rows have come since"
    board.add(batch(1))
    board.note_running(False)
    assert board.complaints() == []
    now[0] += 3_600
    assert board.complaints() == ["The master table products is 1 h 3 min old, older than 1 h."]
    board.follow_mirrors(lambda: {"/products": MirrorNumbers(3, age_seconds=5.0, refreshes=9)})
    assert board.complaints() == [], "a mirror is as old as its last look at its source"


def test_a_batch_that_follows_another_at_once_is_a_new_one() -> None:
    now = [START]
    board = LiveBoard(about(max_batch_seconds=60.0), now=lambda: now[0])
    for number in range(10):
        board.note_running(True)
        now[0] += 30
        board.add(batch(number))
    assert board.complaints() == []
    assert board.state()["running_seconds"] == 0


def test_metrics_tell_up_the_last_batch_and_the_age_of_the_master() -> None:
    board = LiveBoard(about(), lambda: [MasterFacts('pro"ducts\n', "/x", created=START - 50, pins=2)], lambda: START)
    text = board.metrics()
    assert 'semistream_up{query="sales"} 1\n' in text
    assert 'semistream_healthy{query="sales"} 1\n' in text
    assert 'semistream_master_age_seconds{query="sales",table="pro\\"ducts\\n"} 50\n' in text
    assert 'semistream_master_pins{query="sales",table="pro\\"ducts\\n"} 2\n' in text
    assert "last_batch_timestamp" not in text
    board.add(batch())
    assert f'semistream_last_batch_timestamp_seconds{{query="sales"}} {START + 0.5:.15g}\n' in board.metrics()
    assert all(line.startswith(("#", "semistream_")) for line in board.metrics().splitlines())


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.421, "0.42 s"), (1, "1 s"), (9.96, "10 s"), (61, "1 min 1 s"), (7_260, "2 h 1 min"), (100_000, "1 day 3 h")],
)
def test_lengths_of_time_are_short(seconds: float, text: str) -> None:
    assert short_duration(seconds) == text
