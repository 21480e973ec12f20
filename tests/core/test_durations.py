"""Times as people write them."""

from __future__ import annotations

import pytest

from semistream.core.durations import format_seconds, parse_seconds
from semistream.core.errors import InvalidSettingError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *[(0, 0), (1.5, 1.5), ("0", 0), ("90", 90), ("90s", 90), ("1 second", 1), ("10 minutes", 600), ("10min", 600)],
        *[("2 hours", 7200), ("1.5 h", 5400), ("7 days", 604_800), ("1 Week", 604_800)],
    ],
)
def test_times_are_read_in_every_unit(text: float | str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1", -1, "7 moons", "days", float("nan"), float("inf"), True])
def test_what_is_not_a_time_is_refused(text: float | str) -> None:
    with pytest.raises(InvalidSettingError, match="is not a duration"):
        parse_seconds(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 seconds"), (1, "1 second"), (59, "59 seconds"), (60, "1 minute"), (7300, "2 hours"), (604_800, "1 week")],
)
def test_times_are_shown_in_the_largest_unit(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
