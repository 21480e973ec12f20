"""A few real signals to processes that change a table."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from real_signals import interrupt


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_a_signal_leaves_a_whole_table(tmp_path: Path, sent: signal.Signals) -> None:
    assert interrupt(tmp_path, sent, 1, 1)["signals"] == 1
