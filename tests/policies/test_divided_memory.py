"""Memory goes to the caches that save most, in steps, and only if that is worth a move."""

from __future__ import annotations

from semistream.policies.caching import CacheWorth, divided_memory

SHARES = (0.25, 0.5, 0.75, 1.0)


def cache(
    saved: tuple[float, ...], twice: float = 0.0, size: int = 1_000_000, whole: int = 10**9, spent: float = 10.0
) -> CacheWorth:
    return CacheWorth(size, whole, spent, SHARES, saved, twice)


def divided(*worths: CacheWorth) -> list[int] | None:
    return divided_memory(worths, min_bytes=[worth.size_bytes // 8 for worth in worths])


FLAT = cache((9.9, 10.0, 10.0, 10.0))
STEEP = cache((2.0, 4.0, 6.0, 8.0), twice=6.0)


def test_a_cache_that_needs_little_gives_half_of_its_memory_to_one_that_gains() -> None:
    sizes = divided(FLAT, STEEP)
    assert sizes is not None
    assert sum(sizes) == 2_000_000
    assert 500_000 <= sizes[0] <= 530_000
    assert divided(STEEP, FLAT) == sizes[::-1]


def test_what_is_saved_counts_in_seconds_and_not_in_hits() -> None:
    many_quick = cache((0.02, 0.04, 0.06, 0.08), twice=0.06)
    few_slow = cache((2.0, 4.0, 5.0, 6.0), twice=3.0)
    sizes = divided(many_quick, few_slow)
    assert sizes is not None
    assert sizes[1] > 1_400_000


def test_caches_that_save_alike_keep_what_they_have() -> None:
    assert divided(STEEP, STEEP) is None
    assert divided(FLAT, FLAT) is None


def test_a_gain_that_is_small_compared_with_all_reads_moves_nothing() -> None:
    assert divided(FLAT, cache((2.0, 4.0, 6.0, 8.0), twice=6.0, spent=1000.0)) is None


def test_a_cache_of_all_rows_takes_no_more() -> None:
    whole = cache((2.0, 4.0, 6.0, 8.0), twice=6.0, whole=1_000_000)
    assert divided(FLAT, whole) is None
    small = cache((2.0, 4.0, 6.0, 8.0), whole=300_000)
    sizes = divided(small, STEEP)
    assert sizes is not None
    assert sizes[0] >= 300_000, "it keeps what it uses"
    assert sizes[1] > 1_300_000


def test_a_cache_that_is_of_use_only_as_a_whole_is_not_overlooked() -> None:
    cliff = cache((0.0, 0.0, 0.0, 10.0))
    slope = cache((1.0, 1.5, 1.8, 2.0), twice=1.0)
    assert divided(cliff, slope) is None, "a step by step division would take the cliff's memory"


def test_of_three_each_gets_what_it_is_worth_and_none_less_than_its_part() -> None:
    nothing = cache((0.0, 0.0, 0.0, 0.0), size=150_000)
    sizes = divided_memory([FLAT, STEEP, nothing], min_bytes=[125_000, 125_000, 125_000])
    assert sizes is not None
    assert sum(sizes) == 2_150_000
    assert sizes[2] >= 125_000
    assert sizes[1] > 1_400_000
