"""A short race of writers, readers and a vacuum."""

from __future__ import annotations

from pathlib import Path

from writers_and_readers import WRITERS, race


def test_nothing_is_lost_while_two_write_one_vacuums_and_two_read(tmp_path: Path) -> None:
    figures = race(tmp_path, 20)
    assert figures["commits"] == 20 * WRITERS
