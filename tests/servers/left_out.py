"""Tests whose server cannot be had are left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest
from server_process import NotInstalledError


def left_out(sentence: str) -> NoReturn:
    """Skip a test whose server cannot be had, with one sentence; in CI that is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


@contextmanager
def left_out_if_missing() -> Iterator[None]:
    """Skip the test if the block finds that a server is not installed."""
    try:
        yield
    except NotInstalledError as error:
        left_out(str(error))
