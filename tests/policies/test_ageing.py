"""How fast a cache forgets: late while nothing changes, at once when the stream does."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from semistream.policies.caching.ageing import SteadyAgeing

TUPLES = 10_000_000


def halvings(ageing: SteadyAgeing, shares: list[float]) -> list[int]:
    return [ageing.after_window(int(share * TUPLES), TUPLES) for share in shares]


def test_the_windows_between_two_halvings_double_while_the_share_is_steady() -> None:
    halved = halvings(SteadyAgeing(64), [0.5] * 400)
    at = [window for window, times in enumerate(halved) if times]
    between = [after - before for before, after in pairwise(at)]
    assert between[:4] == [8, 16, 32, 64]
    assert set(between[4:]) == {64}
    assert set(halved) == {0, 1}


def test_a_cache_that_still_fills_is_halved_at_the_first_pace() -> None:
    halved = halvings(SteadyAgeing(64), [0.01 * 1.1**window for window in range(40)])
    assert [window for window, times in enumerate(halved) if times] == [3, 7, 11, 15, 19, 23, 27, 31, 35, 39]


def test_everything_is_forgotten_when_the_stream_has_changed() -> None:
    ageing = SteadyAgeing(64)
    halvings(ageing, [0.5] * 100)
    assert ageing.is_settled
    assert halvings(ageing, [0.1]) == [16]
    assert not ageing.is_settled


def test_a_smaller_change_takes_away_what_a_long_memory_has_gathered() -> None:
    ageing = SteadyAgeing(64)
    halvings(ageing, [0.5] * 130)
    (times,) = halvings(ageing, [0.43])
    assert 2 <= times <= 6
    assert halvings(ageing, [0.43] * 4) == [0, 0, 0, 1]


def test_a_steady_share_of_a_stream_that_drifts_does_not_lengthen_the_memory() -> None:
    ageing = SteadyAgeing(64)
    halvings(ageing, [0.5] * 130)
    long_memory = ageing.remembered
    at = [window for window in range(200) if ageing.after_window(TUPLES // 2, TUPLES, 0.3 * (window % 2))]
    assert at[-1] - at[-2] == 4
    assert ageing.remembered < long_memory / 4


def test_noise_is_not_taken_for_a_change() -> None:
    ageing = SteadyAgeing(64)
    for window in range(200):
        assert ageing.after_window(30 + 12 * (-1) ** window, 2_000) <= 1


def test_a_cache_of_another_size_may_answer_another_share() -> None:
    ageing = SteadyAgeing(64)
    halvings(ageing, [0.5] * 100)
    ageing.resized(1.0)
    assert halvings(ageing, [0.2])[0] <= 1


@given(st.integers(1, 200), st.lists(st.integers(0, 1_000), min_size=1, max_size=300))
def test_whatever_comes_the_past_is_halved_in_the_end(most: int, answered: list[int]) -> None:
    ageing = SteadyAgeing(most)
    halved = [ageing.after_window(count, 1_000) for count in answered]
    quiet = longest = 0
    for times in halved:
        quiet = 0 if times else quiet + 1
        longest = max(longest, quiet)
    assert longest < max(most, 1)


def test_what_is_remembered_is_counted_in_windows_of_the_size_there_is_now() -> None:
    ageing = SteadyAgeing(64)
    halvings(ageing, [0.5] * 3)
    ageing.resized(2.0)
    assert ageing.remembered == 6.0


def test_a_doubtful_loss_of_uses_does_not_shorten_the_memory_but_keeps_it_from_lengthening() -> None:
    ageing = SteadyAgeing(64)
    at = [window for window in range(100) if ageing.after_window(TUPLES // 2, TUPLES, 0.0, 0.3)]
    assert {after - before for before, after in pairwise(at)} == {4}
