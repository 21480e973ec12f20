"""The wall clock and the clock that charges costs."""

from __future__ import annotations

from dataclasses import fields

import pytest

from semistream.core.clock import ModelClock, WallClock
from semistream.core.costs import PAPERS, PAPERS_SSD, PROFILES, REMOTE, Operations, profile_named
from semistream.core.errors import InvalidSettingError


def test_the_model_clock_moves_by_charges_only() -> None:
    clock = ModelClock(PAPERS)
    assert (clock.model, clock.now()) == (clock, 0.0)
    clock.advance(1.5)
    clock.sleep_until(4.0)
    clock.sleep_until(2.0)
    assert clock.now() == 4.0


def test_what_is_charged_is_counted_and_costs_what_the_profile_says() -> None:
    clock = ModelClock(PAPERS)
    clock.charge(Operations(seeks=2, bytes_read=1e6, probes=10))
    with clock.lap():
        clock.charge(Operations(outputs=4))
    assert clock.now() == pytest.approx(2 * PAPERS.seek_seconds + 0.1 + 10 * PAPERS.probe_seconds)
    assert clock.operations == Operations(seeks=2, bytes_read=1e6, probes=10, outputs=4)
    assert clock.operations.since(Operations(seeks=1, probes=10)) == Operations(seeks=1, bytes_read=1e6, outputs=4)


def test_each_operation_has_its_own_cost() -> None:
    for field in fields(Operations):
        assert PAPERS.seconds(Operations(**{field.name: 1})) > 0
    everything = Operations(*([1] * len(fields(Operations))))
    alone = sum(PAPERS.seconds(Operations(**{field.name: 1})) for field in fields(Operations))
    assert PAPERS.seconds(everything) == pytest.approx(alone)


def test_a_lap_collects_charges_without_moving_the_clock() -> None:
    clock = ModelClock(PAPERS)
    with clock.lap() as outer:
        clock.advance(1.0)
        with clock.lap() as inner:
            clock.advance(5.0)
        clock.advance(2.0)
    assert (outer.seconds, inner.seconds, clock.now()) == (3.0, 5.0, 0.0)
    clock.advance(max(outer.seconds, inner.seconds))  # side by side: the longer of the two
    assert clock.now() == 5.0


def test_the_work_of_a_lap_has_a_time_of_its_own() -> None:
    clock = ModelClock(PAPERS)
    clock.advance(10.0)
    with clock.lap() as outer:
        clock.advance(1.0)
        with clock.lap():
            clock.advance(5.0)
            assert clock.moment() == 16.0
        clock.sleep_until(11.5)
        clock.sleep_until(3.0)
        assert clock.moment() == 11.5
    assert (outer.seconds, clock.now(), clock.moment()) == (1.5, 10.0, 10.0)


def test_a_lap_ends_when_its_work_fails() -> None:
    clock = ModelClock(PAPERS)
    with pytest.raises(ValueError, match="x"), clock.lap():
        raise ValueError("x")
    clock.advance(1.0)
    assert clock.now() == 1.0


def test_the_wall_clock_ignores_charges_and_sleeps() -> None:
    clock = WallClock()
    clock.charge(Operations(seeks=1e9))
    assert clock.now() < 100
    moment = clock.now() + 0.02
    clock.sleep_until(moment)
    assert clock.now() >= moment
    clock.sleep_until(moment - 1)
    assert clock.model is None


def test_a_read_costs_latency_and_bandwidth() -> None:
    assert PAPERS.read_seconds(10_000_000) == pytest.approx(1.0055)
    assert PAPERS.read_seconds(0, sequential=True) == pytest.approx(0.0005)
    assert REMOTE.read_seconds(0) == REMOTE.read_seconds(0, sequential=True)


def test_the_later_machine_of_the_papers_is_faster_in_everything() -> None:
    for field in fields(PAPERS):
        before, after = getattr(PAPERS, field.name), getattr(PAPERS_SSD, field.name)
        if field.name.endswith("_seconds") and before:
            assert after < before, field.name
    assert PAPERS_SSD.bytes_per_second > PAPERS.bytes_per_second


def test_profiles_are_found_by_name() -> None:
    assert all(profile_named(name) is profile for name, profile in PROFILES.items())
    with pytest.raises(InvalidSettingError, match="papers"):
        profile_named("floppy")
