"""semistream without Spark as a peer: right rows, and a time for each turn."""

from __future__ import annotations

from pathlib import Path

from fake_peers import small_bench

from semistream_lab.peers.batch_join import BatchJoin
from semistream_lab.peers.comparison import TurnPlan, compare


def test_the_join_gives_the_right_rows_and_one_time_a_turn(tmp_path: Path) -> None:
    bench = small_bench(tmp_path, master_rows=20_000, batch_rows=5000)
    compared = compare([BatchJoin()], bench, TurnPlan(turns=1, batches=4, slow_batches=1, dropped=1), lambda *_: None)
    assert compared.failures == {}
    (result,) = compared.results
    assert (result.turns, result.batches) == (1, 1)
    assert result.checked_rows == 10_000
    assert result.rows_per_second > 0
    assert 0 < (result.cache_hit_rate or 0) <= 1
    assert result.memory_bytes == bench.data.situation.memory_bytes
