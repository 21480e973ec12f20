"""Keys that are asked for most while they are new."""

from __future__ import annotations

import numpy as np

from semistream.generator import ZipfKeys
from semistream_lab.workload.newest_keys import NewestKeys

KEYS, PERIOD = 1_000, 50_000


def newest() -> NewestKeys:
    return NewestKeys(ZipfKeys(KEYS, 1.0, seed=1, ranks="sorted"), PERIOD)


def test_every_key_is_the_most_frequent_one_for_a_while() -> None:
    keys = newest().draw(2 * PERIOD)
    for moment in (0, 10_000, 45_000, 70_000):
        newest_now = moment * KEYS // PERIOD % KEYS + 1
        around = keys[moment : moment + 50]  # as long as one key is the newest
        assert np.bincount(around, minlength=KEYS + 1).argmax() == newest_now


def test_over_a_whole_period_all_keys_are_asked_for_alike() -> None:
    counts = np.bincount(newest().draw(20 * PERIOD), minlength=KEYS + 1)[1:]
    assert counts.min() > 0.7 * counts.mean()
    assert counts.max() < 1.3 * counts.mean()


def test_the_same_keys_come_however_draws_are_cut_and_from_any_position_on() -> None:
    whole, parts = newest().draw(1_000), newest()
    assert (np.concatenate([parts.draw(1), parts.draw(600), parts.draw(399)]) == whole).all()
    later = newest()
    later.seek(700)
    assert (later.draw(300) == whole[700:]).all()
