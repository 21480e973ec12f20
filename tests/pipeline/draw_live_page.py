"""Draws the pictures of the live page in docs/figures, from made-up batches.

PYTHONPATH=src:tests:tests/shared python tests/pipeline/draw_live_page.py
"""

from __future__ import annotations

import time
from pathlib import Path

from headless_browser import HeadlessBrowser
from recorded_batches import run_of
from test_live_page_in_browser import SHOWN, SIZES, Served

_FIGURES = Path(__file__).parents[2] / "docs" / "figures"
_BATCHES = 200
_PHONE_HEIGHT = 1_480


def main() -> None:
    """Draw a run that keeps up, wide and on a phone in dark mode, and one that falls behind."""
    with HeadlessBrowser() as browser:
        for name, growth, size, dark in (
            ("live_page", 0.0, "wide", False),
            ("live_page_narrow", 0.0, "narrow", True),
            ("live_page_behind", 400.0, "wide", False),
        ):
            page = Served()
            page.board._started = time.time() - _BATCHES - 1
            for one in run_of(_BATCHES, start=time.time() - _BATCHES - 1, growth=growth, keys=8):
                page.board.add(one)
            # Of the phone's long page the first screens.
            width, height = SIZES[size]
            browser.show_as(width, height if size == "wide" else _PHONE_HEIGHT, dark=dark)
            browser.open(page.url)
            browser.wait_for(SHOWN)
            browser.screenshot(_FIGURES / f"{name}.png", whole=size == "wide")
            page.server.stop()


if __name__ == "__main__":
    main()
