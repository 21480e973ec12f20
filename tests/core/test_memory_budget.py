"""The byte budget, and sizes as people write them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core.budget import MemoryBudget, format_bytes, parse_bytes
from semistream.core.errors import BudgetExceededError, InvalidSettingError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (1, 1),
        ("64", 64),
        ("64b", 64),
        ("64KB", 64_000),
        ("64 MB", 64_000_000),
        (" 1.5gb ", 1_500_000_000),
        ("1KiB", 1024),
        ("2 MiB", 2 * 1024**2),
        ("0.5GiB", 2**29),
    ],
)
def test_sizes_are_read_as_people_write_them(text: int | str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    "text", [0, -1, "", "MB", "-5MB", "5 XB", "1e6", "0", "0.1", "5MBs", "NaN", "1,5MB", True, None, 1.5, [1]]
)
def test_what_is_no_size_is_refused_in_one_sentence(text: object) -> None:
    with pytest.raises(InvalidSettingError, match=r"\.$"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("size", "text"), [(1, "1 byte"), (999, "999 bytes"), (1000, "1.0 KB"), (64e6, "64.0 MB"), (2.5e9, "2.5 GB")]
)
def test_sizes_are_shown_with_their_unit(size: float, text: str) -> None:
    assert format_bytes(size) == text


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 600)), max_size=40))
def test_the_books_of_a_budget_always_balance(steps: list[tuple[str, int]]) -> None:
    budget = MemoryBudget(1000)
    held = dict.fromkeys("abc", 0)
    for component, size in steps:
        fits = sum(held.values()) + size <= 1000
        with nullcontext() if fits else pytest.raises(BudgetExceededError, match=f"The {component} needs"):
            budget.reserve(component, size)
        held[component] += size if fits else 0
        assert budget.used_bytes == sum(held.values()) == 1000 - budget.free_bytes
    assert {name: size for name, size in budget.by_component().items() if size} == {
        name: size for name, size in held.items() if size
    }


def test_a_component_that_asks_for_too_much_is_named_and_gets_nothing() -> None:
    budget = MemoryBudget("1KB")
    budget.reserve("index", 600)
    with pytest.raises(BudgetExceededError, match=r"The cache needs 500 bytes.*400 bytes of the 1\.0 KB .*more memory"):
        budget.reserve("cache", 500)
    assert budget.by_component() == {"index": 600}


def test_threads_may_share_a_budget() -> None:
    budget = MemoryBudget(1000)

    def work(name: int) -> int:
        taken = 0
        for _ in range(500):
            with suppress(BudgetExceededError):
                budget.reserve(str(name), 1)
                taken += 1
        return taken

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(work, range(4))) == 1000
    assert budget.used_bytes == 1000
