"""Flink itself beside semistream, where it is installed: set the variables that the page of the peers names."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fake_peers import small_bench

from semistream_lab.peers.comparison import TurnPlan, compare
from semistream_lab.peers.flink.installation import JARS_VARIABLE, PYTHON_VARIABLE, FlinkInstallation
from semistream_lab.peers.peers_by_name import Addresses, all_peers

NAMES = ("join", "flink-identity", "flink-jdbc-lookup")


def _addresses() -> Addresses:
    python, jars = os.environ.get(PYTHON_VARIABLE), os.environ.get(JARS_VARIABLE)
    flink = FlinkInstallation(Path(python) if python else None, Path(jars) if jars else None)
    return Addresses(os.environ.get("SEMISTREAM_PEERS_POSTGRESQL"), flink=flink)


@pytest.mark.slow
def test_flink_gives_the_same_rows_and_leaves_no_trace_of_a_password(tmp_path: Path) -> None:
    peers = [peer for peer in all_peers(_addresses()) if peer.name in NAMES]
    for peer in peers:
        if (missing := peer.why_unavailable()) is not None:
            pytest.skip(missing)
    bench = small_bench(tmp_path, master_rows=20_000, batch_rows=2000)
    plan = TurnPlan(turns=2, batches=5, slow_batches=1, dropped=1)
    compared = compare(peers, bench, plan, lambda *_: None)
    assert compared.failures == {}
    by_peer = {result.peer: result for result in compared.results}
    assert set(by_peer) == set(NAMES)
    assert by_peer["join"].checksum == by_peer["flink-jdbc-lookup"].checksum
    assert by_peer["flink-identity"].checksum != by_peer["flink-jdbc-lookup"].checksum
    assert all(result.batches == plan.turns and result.rows_per_second > 0 for result in compared.results)
    assert 0 < (by_peer["flink-jdbc-lookup"].cache_hit_rate or 0) <= 1
    assert (by_peer["flink-jdbc-lookup"].peak_process_bytes or 0) > 200_000_000
    logs = list((tmp_path / "flink-logs").iterdir())
    assert logs
    if password := urlsplit(os.environ["SEMISTREAM_PEERS_POSTGRESQL"]).password:
        assert not [log.name for log in logs if password in log.read_text(errors="replace")]
    assert {path.name.split("-")[0] for path in tmp_path.iterdir()} == {"flink", "master", "parquet"}
    assert [path.name for path in tmp_path.glob("flink-*")] == ["flink-logs"]
