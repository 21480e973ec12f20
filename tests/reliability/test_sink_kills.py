"""The short version of the kills of pipelines into all kinds of sinks."""

from __future__ import annotations

from pathlib import Path

import pytest
from sink_kills import COLUMNS, Plan, check_messages, check_rows, enriched, run

from servers.spark_jars import jars_of

SALES = [(0, 5, 2), (1, 5, 3), (2, 6, 2), (2, 6, 2)]


def test_the_accounts_notice_what_is_missing_double_old_and_wrongly_joined() -> None:
    rows = [enriched(sale) for sale in SALES]
    check_rows("delta", rows, SALES)
    check_rows("delta-upsert", [rows[1], rows[2]], SALES)
    joined_wrongly = [(*rows[0][:-1], 9), *rows[1:]]
    for name, wrong in (
        ("delta", rows[1:]),
        ("delta", [*rows, rows[0]]),
        ("delta", joined_wrongly),
        ("mysql-upsert", [rows[0], rows[2]]),
        ("mysql-upsert", rows),
    ):
        with pytest.raises(AssertionError, match="missing"):
            check_rows(name, wrong, SALES)


def test_the_accounts_know_repeated_messages_from_others() -> None:
    messages = [
        {**dict(zip(COLUMNS, enriched(sale), strict=True)), "semistream_id": str(number)}
        for number, sale in enumerate(SALES)
    ]
    assert check_messages(messages, SALES) == 0
    assert check_messages([*messages, messages[1]], SALES) == 1
    for wrong in (
        messages[1:],
        [*messages, {**messages[1], "semistream_id": "4"}],
        [*messages[:3], {**messages[3], "semistream_id": "0"}],
    ):
        with pytest.raises(AssertionError):
            check_messages(wrong, SALES)


def test_every_sink_keeps_its_guarantee_when_the_driver_is_killed(tmp_path: Path) -> None:
    for name in ("delta", "kafka", "broker"):
        jars_of(name)
    sinks = ("delta", "delta-upsert", "postgresql", "postgresql-upsert", "mysql-upsert", "kafka")
    figures = run(Plan(seed=5, sinks=sinks, kills=1, worker_kills=1, parts=4, rows_of_a_part=200), tmp_path)
    assert figures["rows"] == 4 * 200 * len(sinks)
    assert (figures["kills"], figures["worker kills"]) == (1, 1), "a campaign that kills nobody proves nothing"
