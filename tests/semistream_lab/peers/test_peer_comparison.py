"""A comparison: who is measured, who is set aside, and what is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_peers import FailingPeer, FakePeer, ShortPeer, WrongPeer, small_bench

from semistream.core.errors import InvalidSettingError
from semistream.core.flat_json import as_json
from semistream_lab.cost.machine import Machine
from semistream_lab.peers import chart, comparison_report, peer_results
from semistream_lab.peers.comparison import Comparison, TurnPlan, compare
from semistream_lab.peers.contract import PeerFailedError, WrongRowsError
from semistream_lab.peers.peer_results import percentile

MACHINE = Machine("a processor", 2, "ext4")
PLAN = TurnPlan(turns=2, batches=3, slow_batches=1, dropped=0)


def run(folder: Path, *peers: FakePeer) -> Comparison:
    """Compare fakes."""
    return compare(peers, small_bench(folder), PLAN, lambda *_: None)


def test_a_peer_with_wrong_rows_is_never_measured(tmp_path: Path) -> None:
    right, wrong, short = FakePeer("right"), WrongPeer("wrong", 0.1), ShortPeer("short", 0.1)
    compared = run(tmp_path, wrong, short, right)
    assert [result.peer for result in compared.results] == ["right"]
    assert not wrong.positions
    assert not short.positions
    assert isinstance(compared.failures["wrong"], WrongRowsError)
    assert "100 rows instead of 200" in str(compared.failures["short"])


def test_a_failure_sets_one_peer_aside_and_is_told_without_its_words(tmp_path: Path) -> None:
    failing, right = FailingPeer("failing"), FakePeer("right")
    compared = run(tmp_path, failing, right)
    assert [result.peer for result in compared.results] == ["right"]
    error = compared.failures["failing"]
    assert isinstance(error, PeerFailedError)
    assert "RuntimeError" in str(error)
    assert "secret" not in str(error)
    assert isinstance(error.__cause__, RuntimeError)


def test_every_peer_cleans_up_once_whatever_happens(tmp_path: Path) -> None:
    peers = [FakePeer("right"), WrongPeer("wrong"), FailingPeer("failing")]
    run(tmp_path, *peers)
    assert [peer.cleaned for peer in peers] == [1, 1, 1]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(peers, small_bench(tmp_path), PLAN, interrupted)
    assert [peer.cleaned for peer in peers] == [2, 2, 2]


def test_no_turn_sees_rows_of_another_and_all_peers_see_the_same(tmp_path: Path) -> None:
    one, other = FakePeer("one"), FakePeer("other")
    run(tmp_path, one, other)
    assert one.positions == other.positions
    assert len(set(one.positions)) == PLAN.turns
    assert 0 not in one.positions  # where the check begins


def test_progress_counts_every_step_once(tmp_path: Path) -> None:
    steps: list[tuple[int, int | None]] = []
    peers = [FakePeer("one"), WrongPeer("wrong")]
    compare(peers, small_bench(tmp_path), PLAN, lambda _, done, total: steps.append((done, total)))
    assert steps == [(done, 6) for done in range(6)]


def test_ratios_are_of_medians_and_missing_ones_are_null(tmp_path: Path) -> None:
    compared = run(tmp_path, FakePeer("identity", 5.0), FakePeer("other", 20.0))
    rows = {row["peer"]: row for row in peer_results.rows(compared.results, MACHINE, "4.2.0")}
    assert rows["other"]["times_of_identity"] == 4.0
    assert rows["identity"]["times_of_identity"] == 1.0
    assert rows["other"]["times_of_enrich"] is None
    assert rows["other"]["rows_per_second"] == 100 * 1000 / 20
    assert rows["other"]["batches"] == PLAN.turns * PLAN.batches


def test_json_is_a_list_of_flat_objects_with_the_machine(tmp_path: Path) -> None:
    compared = run(tmp_path, FakePeer("enrich"), FakePeer("identity"))
    rows = json.loads(as_json(peer_results.rows(compared.results, MACHINE, "4.2.0")))
    assert not any(isinstance(value, dict | list) for row in rows for value in row.values())
    for row in rows:
        assert set(row) >= {
            "peer", "master_rows", "batch_rows", "zipf", "memory_bytes", "batches", "rows_per_second", "median_ms",
            "p99_ms", "add_batch_ms", "bytes_read_a_batch", "peak_process_bytes", "times_of_identity",
            "times_of_enrich", "checked_rows", "checksum", "cpu", "cores", "file_system", "spark",
        }  # fmt: skip
    assert len({row["checksum"] for row in rows}) == 1


def test_the_page_has_a_line_for_each_peer_and_says_who_is_missing(tmp_path: Path) -> None:
    compared = run(tmp_path, FakePeer("identity", 5.0), FakePeer("enrich", 6.0), FakePeer("other", 4000.0))
    bench = small_bench(tmp_path)
    left_out = {"redis": "No server was named."}
    comparison_report.write(tmp_path / "out", compared.results, left_out, bench.data.situation, MACHINE, "4.2.0")
    page = (tmp_path / "out" / "peers.md").read_text()
    table = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")]
    assert table == ["Peer", "identity", "enrich", "other"]
    assert "| other | 25 | 4,000.0 |" in page
    assert "| 800.00 | 666.67 |" in page
    assert "- **redis**: No server was named." in page
    assert "a processor" in page
    assert len(json.loads((tmp_path / "out" / "peers.json").read_text())) == 3
    assert (tmp_path / "out" / "peers.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "out" / "peers.svg").read_bytes()


def test_the_same_results_give_the_same_figure(tmp_path: Path) -> None:
    compared = run(tmp_path, FakePeer("enrich", 0.2), FakePeer("other", 4000.0))
    assert chart.draw(compared.results) == chart.draw(compared.results)


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(number) for number in range(1, 101)]
    assert percentile(values, 0.99) == 99
    assert percentile([3.0], 0.99) == 3
    assert percentile([1.0, 2.0], 0.99) == 2


@pytest.mark.parametrize(
    "wrong", [{"turns": 0}, {"batches": 0}, {"slow_batches": 0}, {"dropped": -1}, {"dropped": 899}]
)
def test_a_plan_without_sense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidSettingError):
        TurnPlan(**{"turns": 1, "batches": 2, "slow_batches": 1, "dropped": 0, **wrong})
