"""What the lab measures inside joins: pages read, phases, buffers between phases and switches between them."""

from dataclasses import replace

import numpy as np
import pytest

from semistream.core.errors import InvalidSettingError
from semistream.generator import ZipfKeys
from semistream_lab.experiments.measuring import recorded
from semistream_lab.experiments.measuring.kinds import run
from semistream_lab.experiments.measuring.page_reads import page_shares
from semistream_lab.experiments.measuring.recorded import Recorded, Source
from semistream_lab.experiments.point import Point

SMALL = {"master_rows": 60_000, "memory_bytes": 1_500_000, "queues": 3.0}


def small(kind: str, algorithm: str, **more: object) -> Point:
    return Point(kind=kind, algorithm=algorithm, **{**SMALL, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("ranks", ["sorted", "shuffled"])
def test_page_shares_are_those_of_the_keys_that_are_drawn(ranks: str) -> None:
    shares = page_shares(small("page-reads", "hybridjoin", ranks=ranks, seed=5), 2)
    keys = ZipfKeys(60_000, 1.0, seed=5, ranks=ranks).draw(400_000)  # type: ignore[arg-type]
    drawn_shares = np.bincount((keys - 1) // (2 * 68), minlength=len(shares)) / len(keys)
    assert shares.sum() == pytest.approx(1)
    assert np.abs(drawn_shares - shares).max() < 0.01
    assert np.corrcoef(drawn_shares, shares)[0, 1] > 0.99


def test_hybridjoin_reads_hot_pages_less_often_than_they_are_asked_for() -> None:
    row = run(small("page-reads", "hybridjoin", ranks="shuffled"))
    assert 0.5 < float(row["hot_reads_ratio"]) < float(row["hot_tuples_ratio"])  # type: ignore[arg-type]
    assert 0 < float(row["reads_of_rare"]) <= float(row["reads_of_infrequent"]) <= 1  # type: ignore[arg-type]
    assert row["queue_entries"] == 0


def test_scheduled_reads_bring_what_the_share_of_the_page_lets_expect() -> None:
    row = run(small("page-reads", "hybridjoin-pq", ranks="shuffled", queues=20.0))
    assert float(row["matches_per_expected"]) == pytest.approx(1, abs=0.05)  # type: ignore[arg-type]
    assert 0 < int(row["longest_queue"]) <= int(row["queue_entries"])  # type: ignore[arg-type]
    assert row["queue_bytes"] == 16 * int(row["longest_queue"])  # type: ignore[arg-type]


def test_watching_does_not_change_what_is_watched() -> None:
    watched = run(small("page-reads", "hybridjoin-pq", ranks="shuffled"))
    plain = run(small("rate", "hybridjoin-pq", ranks="shuffled"))
    assert {name: watched[name] for name in plain if name != "wall_seconds"} == {
        name: value for name, value in plain.items() if name != "wall_seconds"
    }


def test_reads_of_ssij_bring_less_and_less_in_a_join_phase() -> None:
    parts = [
        run(small("join-phases", "ssij", ranks="shuffled", options=(("part", part), ("parts", 4))))
        for part in range(1, 5)
    ]
    served = [float(part["matches_per_read"]) for part in parts]  # type: ignore[arg-type]
    assert served[0] > served[-1]
    assert len({part["phases"] for part in parts}) == 1


def test_only_x_hybridjoin_stores_tuples_that_need_no_read() -> None:
    stored = {name: run(small("disk-bound", name)) for name in ("x-hybridjoin", "optimised-x-hybridjoin", "hybridjoin")}
    for name, row in stored.items():
        all_of_them = row["disk_bound_tuples"] == row["waiting_slots"]
        assert all_of_them is (name != "x-hybridjoin")


def test_the_buffer_between_phases_is_full_on_a_fast_stream_and_empty_on_a_slow_one() -> None:
    fast = run(small("handover", "p-cachejoin", ranks="shuffled"))
    slow = run(small("handover", "p-cachejoin", ranks="shuffled", arrival_rate=2_000.0))
    assert float(fast["full_share"]) > 0.9  # type: ignore[arg-type]
    assert float(slow["full_share"]) == 0  # type: ignore[arg-type]
    assert float(slow["mean_fill"]) < 0.05 < float(fast["mean_fill"])  # type: ignore[arg-type]
    assert float(slow["handover_wait_seconds"]) < float(fast["handover_wait_seconds"])  # type: ignore[arg-type]


def test_an_algorithm_without_phases_side_by_side_has_no_such_buffer() -> None:
    with pytest.raises(InvalidSettingError, match="cachejoin has no buffer"):
        run(small("handover", "cachejoin"))


def test_switches_between_buffers_are_timed() -> None:
    row = run(small("switching", "op-cachejoin", ranks="shuffled"))
    assert int(row["switches"]) > 10  # type: ignore[arg-type]
    assert 0 <= float(row["ready_share"]) <= 1  # type: ignore[arg-type]
    assert float(row["switch_seconds"]) >= 0  # type: ignore[arg-type]
    assert 0 < float(row["read_seconds"]) < 1  # type: ignore[arg-type]


def test_recorded_data_keeps_the_papers_ratio_of_memory_to_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(part: float) -> Recorded:
        rows = round(40_000_000 * part)
        return Recorded(np.arange(1, rows + 1), np.random.default_rng(0).integers(1, rows + 1, 50_000))

    monkeypatch.setitem(recorded.SOURCES, "invented", Source(load, 40_000_000, row_bytes=100))
    point = Point(
        algorithm="hybridjoin",
        data="invented",
        master_rows=40_000_000,
        memory_bytes=200_000_000,
        options=(("part", 0.001),),
    )
    row = run(point)
    assert row["used_master_rows"] == 40_000
    assert row["used_memory_bytes"] == 200_000
    assert row["absent"] == 0
    larger = run(replace(point, options=(("part", 0.001), ("stream_row_bytes", 138))))
    assert larger["memory_waiting_tuples"] == larger["waiting_slots"] * (8 * 138 + 12)
    assert row["memory_waiting_tuples"] == row["waiting_slots"] * (8 * 20 + 12)


def test_cloud_reports_are_joined_on_their_longitude() -> None:
    point = Point(
        algorithm="hybridjoin-pq",
        data="weather",
        master_rows=20_000_000,
        memory_bytes=250_000_000,
        queues=2.0,
        options=(("part", 0.002),),
    )
    row = run(point)
    assert row["used_master_rows"] == 40_000
    assert float(row["service_rate"]) > 0  # type: ignore[arg-type]


def test_data_that_nobody_has_is_named() -> None:
    with pytest.raises(InvalidSettingError, match="no data 'tides'"):
        run(Point(algorithm="hybridjoin", data="tides"))
