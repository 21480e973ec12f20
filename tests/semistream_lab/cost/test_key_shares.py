"""What the stream asks for, as the cost models see it, against the generator that draws the keys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semistream.generator import ZipfKeys
from semistream_lab.cost.key_shares import key_shares
from semistream_lab.cost.situation import Situation
from semistream_lab.experiments.point import Law


@pytest.mark.parametrize("law", ["discrete", "integral"])
@pytest.mark.parametrize("ranks", ["sorted", "shuffled"])
@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.3])
def test_shares_of_page_groups_are_those_of_drawn_keys(exponent: float, ranks: str, law: Law) -> None:
    rows = 20_000
    bounds = np.append(np.arange(0, rows, 900), rows)
    shares = key_shares(Situation(rows, 1, exponent, ranks, law=law)).of_page_groups(bounds)
    keys = ZipfKeys(rows, exponent, seed=0, ranks=ranks, law=law).draw(400_000)  # type: ignore[arg-type]
    drawn = np.bincount((keys - 1) // 900, minlength=len(shares)) / len(keys)
    assert shares.sum() == pytest.approx(1.0)
    assert np.abs(shares - drawn).max() < 4 * np.sqrt(shares.max() / len(keys))


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(200, 5_000),
    exponent=st.sampled_from([0.0, 0.6, 1.0, 1.5]),
    ranks=st.sampled_from(["sorted", "shuffled"]),
    cached=st.integers(0, 5_000),
    page_group=st.integers(10, 700),
)
def test_what_is_missed_and_what_the_most_frequent_keys_answer_add_up(
    rows: int, exponent: float, ranks: str, cached: int, page_group: int
) -> None:
    shares = key_shares(Situation(rows, 1, exponent, ranks))
    chances = np.where(shares.rank_edges[:-1] < cached, 1.0, 0.0)
    held = int((chances * shares.group_sizes).sum())
    bounds = np.append(np.arange(0, rows, page_group), rows)
    missed = shares.missed_by_page_group(bounds, chances)
    assert (missed >= 0).all()
    assert missed.sum() + shares.of_first_ranks(held) == pytest.approx(1.0, abs=1e-9)


def test_groups_of_ranks_cover_every_rank_once() -> None:
    shares = key_shares(Situation(3_000, 1, 1.0, "sorted"))
    assert shares.rank_edges[0] == 0
    assert shares.rank_edges[-1] == 3_000
    assert (np.diff(shares.rank_edges) > 0).all()
    assert shares.group_shares.sum() == pytest.approx(1.0)
