"""Recorded keys come in their order, again and again, however the draws are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.core.errors import InvalidSettingError
from semistream.generator import Workload
from semistream_lab.workload import RepeatedKeys

parts = st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5), min_size=1, max_size=5)


@given(parts=parts.filter(any), counts=st.lists(st.integers(0, 20), max_size=10))
def test_draws_are_the_rounds_of_the_data_however_they_and_the_data_are_cut(
    parts: list[list[int]], counts: list[int]
) -> None:
    arrays = [np.array(part, dtype=np.int64) for part in parts]
    source = RepeatedKeys(lambda: arrays)
    drawn = np.concatenate([np.empty(0, dtype=np.int64), *(source.draw(count) for count in counts)])
    recorded = np.concatenate(arrays)
    np.testing.assert_array_equal(drawn, recorded[np.arange(sum(counts)) % len(recorded)])


def test_a_draw_is_an_array_of_its_own() -> None:
    recorded = np.array([1, 2, 3], dtype=np.int64)
    source = RepeatedKeys.of(recorded)
    source.draw(2)[:] = 9
    assert recorded.tolist() == [1, 2, 3]
    assert source.draw(2).tolist() == [3, 1]


def test_a_workload_of_recorded_keys_never_ends() -> None:
    keys = Workload(RepeatedKeys.of(np.arange(3))).chunks(7)
    assert [next(keys)[0].tolist() for _ in range(2)] == [[0, 1, 2, 0, 1, 2, 0], [1, 2, 0, 1, 2, 0, 1]]


@pytest.mark.parametrize("arrays", [[], [np.empty(0, dtype=np.int64)] * 2])
def test_data_without_keys_is_refused(arrays: list[np.ndarray[tuple[int], np.dtype[np.int64]]]) -> None:
    source = RepeatedKeys(lambda: arrays)
    assert len(source.draw(0)) == 0
    for _ in range(2):
        with pytest.raises(InvalidSettingError, match="Data without rows has no keys to draw"):
            source.draw(1)
