"""What all tests of the command line share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give tables the same width wherever the tests run."""
    monkeypatch.setenv("COLUMNS", "120")
