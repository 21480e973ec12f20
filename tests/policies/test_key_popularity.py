"""The estimate of how often keys are asked for, from a sample of a stream."""

from __future__ import annotations

import numpy as np
import pytest

from semistream.generator import ZipfKeys
from semistream.policies.caching.key_popularity import KeyPopularity

_KEYS = 500_000


def _estimate(keys: np.ndarray, max_keys: int) -> KeyPopularity:
    return KeyPopularity.from_counts(np.unique(keys, return_counts=True)[1], max_keys)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.25])
@pytest.mark.parametrize("rows", [20_000, 300_000])
def test_the_share_of_the_most_popular_keys_is_known_from_a_short_sample(exponent: float, rows: int) -> None:
    true = np.arange(1.0, _KEYS + 1) ** -exponent
    true /= true.sum()
    estimated = _estimate(ZipfKeys(_KEYS, exponent, seed=3, ranks="shuffled").draw(rows), _KEYS).shares()
    assert estimated.sum() == pytest.approx(1.0)
    assert (np.diff(estimated) <= 0).all()
    for top in (1_000, 10_000, 100_000):
        assert estimated[:top].sum() == pytest.approx(true[:top].sum(), abs=0.02), top


def test_keys_that_are_never_asked_for_have_no_share() -> None:
    asked = ZipfKeys(5_000, 0.0, seed=1, ranks="shuffled").draw(20_000)
    estimated = _estimate(asked, max_keys=1_000_000)
    assert estimated.key_count == pytest.approx(5_000, rel=0.1)


def test_a_sample_of_one_key_knows_it_all() -> None:
    estimated = _estimate(np.full(2_000, 7), max_keys=100)
    assert estimated.shares().tolist() == [1.0]
    assert estimated.known_share == 1.0


def test_a_drawn_stream_has_the_shares() -> None:
    estimated = _estimate(ZipfKeys(1_000, 1.0, seed=3, ranks="shuffled").draw(50_000), 1_000)
    drawn = next(estimated.draw(200_000, seed=5))
    shares = np.bincount(drawn, minlength=estimated.key_count) / len(drawn)
    assert np.abs(shares - estimated.shares()).max() < 0.005
