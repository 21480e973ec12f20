"""The wall clock and the clock that charges costs."""

from __future__ import annotations

import pytest

from semistream.core.clock import ModelClock, WallClock
from semistream.core.costs import PAPERS, PROFILES, REMOTE, profile_named
from semistream.core.errors import InvalidSettingError


def test_the_model_clock_moves_by_charges_only() -> None:
    clock = ModelClock(PAPERS)
    assert (clock.is_model, clock.now()) == (True, 0.0)
    clock.charge(1.5)
    clock.sleep_until(4.0)
    clock.sleep_until(2.0)
    assert clock.now() == 4.0


def test_a_lap_collects_charges_without_moving_the_clock() -> None:
    clock = ModelClock(PAPERS)
    with clock.lap() as outer:
        clock.charge(1.0)
        with clock.lap() as inner:
            clock.charge(5.0)
        clock.charge(2.0)
    assert (outer.seconds, inner.seconds, clock.now()) == (3.0, 5.0, 0.0)
    clock.charge(max(outer.seconds, inner.seconds))  # side by side: the longer of the two
    assert clock.now() == 5.0


def test_a_lap_ends_when_its_work_fails() -> None:
    clock = ModelClock(PAPERS)
    with pytest.raises(ValueError, match="x"), clock.lap():
        raise ValueError("x")
    clock.charge(1.0)
    assert clock.now() == 1.0


def test_the_wall_clock_ignores_charges_and_sleeps() -> None:
    clock = WallClock()
    clock.charge(1000.0)
    assert clock.now() < 100
    moment = clock.now() + 0.02
    clock.sleep_until(moment)
    assert clock.now() >= moment
    clock.sleep_until(moment - 1)
    assert not clock.is_model


def test_a_read_costs_latency_and_bandwidth() -> None:
    assert PAPERS.read_seconds(10_000_000) == pytest.approx(1.0055)
    assert PAPERS.read_seconds(0, sequential=True) == pytest.approx(0.0005)
    assert REMOTE.read_seconds(0) == REMOTE.read_seconds(0, sequential=True)


def test_profiles_are_found_by_name() -> None:
    assert all(profile_named(name) is profile for name, profile in PROFILES.items())
    with pytest.raises(InvalidSettingError, match="papers"):
        profile_named("floppy")
