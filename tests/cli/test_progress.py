"""Progress: plain lines where there is no terminal, and few of them."""

from __future__ import annotations

import pytest

from semistream.cli import progress as module
from semistream.cli.progress import progress


class _Time:
    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> _Time:
    """Return a time that tests set."""
    time = _Time()
    monkeypatch.setattr(module, "time", time)
    return time


def test_lines_come_every_few_seconds_however_often_progress_is_told(
    time: _Time, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress() as reporting:
        for step in range(1000):
            time.now += 0.01
            reporting.update("reading" if step < 500 else "writing", step, 1000)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == ["reading: 399 of 1,000", "writing: 799 of 1,000"]


def test_short_work_says_nothing(time: _Time, capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as reporting:
        reporting.update("reading", 1, None)
        time.now += 1
        reporting.update("writing", 1, None)
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress() as reporting:
        reporting.update("reading", 0, None)
        reporting.update("writing", 50, 100)
    shown = capsys.readouterr()
    assert "writing" in shown.err
    assert "50 of 100" in shown.err
    assert shown.out == ""
