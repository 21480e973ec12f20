"""The wanted share of the keys is absent, and lies among the present ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.core.errors import InvalidSettingError
from semistream.generator import AbsentKeys, ZipfKeys
from semistream_lab.workload import DriftingKeys


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_the_given_share_of_the_draws_is_absent(share: float) -> None:
    drawn = AbsentKeys(ZipfKeys(1_000, 1.0, seed=1, stride=2), share, seed=1).draw(200_000)
    assert (drawn % 2 == 1).mean() == pytest.approx(share, abs=0.004)


def test_the_present_keys_are_those_that_were_drawn() -> None:
    present = ZipfKeys(1_000, 1.0, seed=1, stride=5).draw(10_000)
    drawn = AbsentKeys(ZipfKeys(1_000, 1.0, seed=1, stride=5), 0.3, seed=8).draw(10_000)
    np.testing.assert_array_equal(drawn - (drawn % 5 == 1), present)


def test_absent_keys_spread_over_the_same_ranges_as_present_ones() -> None:
    drawn = AbsentKeys(ZipfKeys(100_000, 0.5, seed=1, stride=2), 0.5, seed=1).draw(400_000)
    absent = drawn % 2 == 1
    shares = [
        np.histogram(keys, bins=20, range=(0, 200_002))[0] / len(keys) for keys in (drawn[absent], drawn[~absent])
    ]
    np.testing.assert_allclose(shares[0], shares[1], atol=0.004)


def test_drifting_keys_can_have_absent_ones() -> None:
    drawn = AbsentKeys(DriftingKeys(ZipfKeys(1_000, 1.0, seed=1, stride=2), 100), 0.2, seed=2).draw(50_000)
    assert (drawn % 2 == 1).mean() == pytest.approx(0.2, abs=0.01)


@given(cuts=st.lists(st.integers(0, 5_000), max_size=5))
@settings(max_examples=20, deadline=None)
def test_absent_keys_do_not_depend_on_how_the_draws_are_cut(cuts: list[int]) -> None:
    whole, parts = (AbsentKeys(ZipfKeys(500, 1.0, seed=3, stride=2), 0.4, seed=3) for _ in range(2))
    drawn = np.concatenate([parts.draw(cut) for cut in [*cuts, 1]])
    np.testing.assert_array_equal(drawn, whole.draw(sum(cuts) + 1))


def test_keys_without_gaps_leave_no_room_for_absent_ones() -> None:
    with pytest.raises(InvalidSettingError, match=r"^Absent keys need gaps .*: give the keys a stride of 2\.$"):
        AbsentKeys(ZipfKeys(10, 1.0, seed=1), 0.1, seed=1)


def test_a_share_above_one_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="share must be a share from 0 to 1, but 2 was given"):
        AbsentKeys(ZipfKeys(10, 1.0, seed=1, stride=2), 2, seed=1)
