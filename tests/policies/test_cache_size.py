"""How large a cache should be, told from what its entries answered."""

from __future__ import annotations

import numpy as np
import pytest

from semistream.policies.caching import best_cache_size

TOTAL = 1_000_000.0


def uses(count: int, exponent: float, keys: int, tuples: int) -> np.ndarray:
    """Return the expected uses of the `count` most frequent of `keys` keys, at full precision times a thousand."""
    shares = np.arange(1, keys + 1) ** -exponent
    return (1000 * tuples * shares[:count] / shares.sum()).astype(np.int64)


def settled(exponent: float, start: int, *, keys: int = 100_000, entry_bytes: float = 100.0) -> int:
    """Return where repeated changes of the size come to rest."""
    count = start
    for _ in range(60):
        wanted = best_cache_size(
            uses(count, exponent, keys, 100_000),
            1000 * 100_000,
            entry_bytes=entry_bytes,
            total_bytes=TOTAL,
            min_entries=10,
            max_entries=6_000,
        )
        if wanted == count:
            return count
        count = wanted
    raise AssertionError("it never comes to rest")


def served(count: int, exponent: float, keys: int = 100_000) -> float:
    shares = np.arange(1, keys + 1) ** -exponent
    return float((TOTAL - 100.0 * count) / (1 - shares[:count].sum() / shares.sum()))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 0.75, 1.0, 1.25])
@pytest.mark.parametrize("start", [200, 1_000, 5_000])
def test_repeated_changes_come_to_rest_near_the_best_size(exponent: float, start: int) -> None:
    best = max(served(count, exponent) for count in range(10, 6_000, 10))
    assert served(settled(exponent, start), exponent) >= 0.97 * best


def test_a_cache_that_answers_nothing_shrinks_to_the_least() -> None:
    count = 1_000
    while True:
        wanted = best_cache_size(
            np.zeros(count, dtype=np.int64),
            10_000,
            entry_bytes=100.0,
            total_bytes=TOTAL,
            min_entries=10,
            max_entries=6_000,
        )
        assert wanted <= count
        if wanted == count:
            break
        count = wanted
    assert count < 200  # no smaller one would serve a hundredth more


def test_a_change_is_limited_so_that_one_look_cannot_ruin_a_cache() -> None:
    count = 1_000
    for answered in (np.zeros(count, dtype=np.int64), np.full(count, 1_000_000)):
        wanted = best_cache_size(
            answered, 2_000_000_000, entry_bytes=100.0, total_bytes=TOTAL, min_entries=10, max_entries=6_000
        )
        assert 0.3 * count <= wanted <= 1.5 * count


def test_nothing_seen_changes_nothing() -> None:
    empty = np.empty(0, dtype=np.int64)
    assert best_cache_size(empty, 0, entry_bytes=1.0, total_bytes=10.0, min_entries=1, max_entries=5) == 0
    assert (
        best_cache_size(np.ones(3, dtype=np.int64), 0, entry_bytes=1.0, total_bytes=10.0, min_entries=1, max_entries=5)
        == 3
    )
