"""Load: how much a pipeline keeps up with, a burst that drains, and minutes in which nothing grows.

LOAD_MINUTES=3 in the environment shortens the last part, which takes 30 minutes otherwise.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from campaign import Case, Figures, Promise
from load_project import Feeder, Held, held, make_project, trend
from pipeline_process import PipelineProcess, wait_until

_SECONDS_TO_START = 300.0
_MAX_GROWTH = 0.01
_MAX_MEMORY_GROWTH = 0.05
_MAX_MEMORY_BYTES = 10_000_000
_MAX_HANDLES = 12
_MAX_PINS = 12
_MAX_LOGS = 260
"""Spark keeps the last 100 batches of both logs, and removes older ones now and then."""


@dataclass(frozen=True)
class Plan:
    """How long each part takes; a rate is in rows a second."""

    seed: int
    minutes: float
    first_rate: float = 2_000
    factor: float = 1.5
    max_steps: int = 12
    step_seconds: float = 30.0
    burst_seconds: float = 30.0
    drain_seconds: float = 240.0


def run(plan: Plan, folder: Path) -> Figures:
    """Step the rate up until the backlog grows, then a burst, then minutes at a steady rate."""
    process = PipelineProcess(make_project(folder, plan.seed))
    feeder = Feeder(folder, plan.seed)
    feeder.start()
    try:
        feeder.rate = plan.first_rate / 10
        wait_until(lambda: feeder.backlog < feeder.fed, _SECONDS_TO_START, "the first batch")
        _drain(plan, feeder)
        kept_up = _kept_up(plan, feeder)
        drained = _burst(plan, feeder, kept_up)
        flat = _steady(plan, feeder, 0.6 * kept_up, process, folder)
        _drain(plan, feeder)
        assert process.stop() == 143, process.said()[-2000:]
    finally:
        process.end()
        feeder.stop()
    return {"rate": kept_up, **drained, **flat, "rows": feeder.fed}


def _kept_up(plan: Plan, feeder: Feeder) -> float:
    """Return the last rate at which the backlog grew by at most one per cent of the load."""
    kept_up = 0.0
    rate = plan.first_rate
    for _ in range(plan.max_steps):
        feeder.rate = rate
        # A second look tells a pipeline that falls behind from a machine that was busy for a moment.
        if _falls_behind(plan, feeder) and _falls_behind(plan, feeder):
            break
        kept_up = rate
        rate *= plan.factor
    assert kept_up, "the backlog grows at the first rate"
    _drain(plan, feeder)
    return kept_up


def _falls_behind(plan: Plan, feeder: Feeder) -> bool:
    """Say whether what batches leave behind grows by more than one per cent of the load."""
    time.sleep(plan.step_seconds / 3)
    before = _min_backlog(feeder, plan.step_seconds / 3)
    after = _min_backlog(feeder, plan.step_seconds / 3)
    return after - before > _MAX_GROWTH * feeder.rate * plan.step_seconds / 3


def _burst(plan: Plan, feeder: Feeder, kept_up: float) -> dict[str, float]:
    """Send ten times a low rate, half more than the pipeline can take, and wait until all of it is done."""
    feeder.rate = 0.15 * kept_up
    usual = _mean_backlog(feeder, 10)
    feeder.rate *= 10
    time.sleep(plan.burst_seconds)
    peak = feeder.backlog
    feeder.rate /= 10
    started = time.monotonic()
    wait_until(lambda: feeder.backlog <= 2 * usual + 1, plan.drain_seconds, "the end of the burst's backlog")
    return {"burst rows": peak, "drained seconds": time.monotonic() - started}


def _steady(plan: Plan, feeder: Feeder, rate: float, process: PipelineProcess, folder: Path) -> dict[str, float]:
    """Keep a steady rate for minutes, and raise an error if backlog, memory, handles or files grow."""
    feeder.rate = rate
    _mean_backlog(feeder, min(30.0, 12 * plan.minutes))
    samples: list[Held] = []
    backlogs: list[float] = []
    seconds = 60 * plan.minutes
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        backlogs.append(_mean_backlog(feeder, min(5.0, seconds / 20)))
        samples.append(held(process, folder))
        assert process.exit_code is None, process.said()[-2000:]
    grown = _differences(samples, backlogs)
    assert grown["backlog"] <= _MAX_GROWTH * rate * seconds, f"the backlog grows: {grown}"
    for name in ("worker_bytes", "driver_bytes"):
        first, _ = trend([getattr(sample, name) for sample in samples])
        assert grown[name] <= _MAX_MEMORY_GROWTH * first + _MAX_MEMORY_BYTES, f"memory grows: {grown}"
    assert grown["handles"] <= _MAX_HANDLES, f"open files grow: {grown}"
    assert grown["hot"] <= 2, f"files of hot rows grow: {grown}"
    assert max(sample.pins for sample in samples) <= _MAX_PINS
    assert max(sample.logs for sample in samples) <= _MAX_LOGS
    last = samples[-1]
    return {
        "minutes": plan.minutes,
        "steady rate": rate,
        "worker bytes": last.worker_bytes,
        "java bytes": last.java_bytes,
        **{f"{name} grown": value for name, value in grown.items()},
        "pins": max(sample.pins for sample in samples),
        "hot files": max(sample.hot for sample in samples),
        "log files": max(sample.logs for sample in samples),
    }


def _differences(samples: Sequence[Held], backlogs: list[float]) -> dict[str, float]:
    grown = {"backlog": trend(backlogs)[1] - trend(backlogs)[0]}
    for name in ("worker_bytes", "driver_bytes", "java_bytes", "handles", "hot"):
        first, last = trend([getattr(sample, name) for sample in samples])
        grown[name] = last - first
    return grown


def _drain(plan: Plan, feeder: Feeder) -> None:
    feeder.rate = 0
    wait_until(lambda: feeder.backlog == 0, plan.drain_seconds, "the end of the backlog")


def _mean_backlog(feeder: Feeder, seconds: float) -> float:
    """Return the mean over a while, because the backlog goes up and down with each batch."""
    return statistics.fmean(_backlogs(feeder, seconds))


def _min_backlog(feeder: Feeder, seconds: float) -> float:
    """Return the least over a while: what a batch leaves behind, however many rows it took."""
    return min(_backlogs(feeder, seconds))


def _backlogs(feeder: Feeder, seconds: float) -> list[float]:
    backlogs = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        backlogs.append(float(feeder.backlog))
        time.sleep(0.05)
    return backlogs


def _cases(seed: int) -> Iterator[Case]:
    minutes = float(os.environ.get("LOAD_MINUTES", "30"))
    yield Case(f"{minutes:g} minutes", lambda folder: run(Plan(seed, minutes), folder))


def _figure(figures: Sequence[Figures]) -> str:
    return "; ".join(
        f"keeps up with {figure['rate']:,.0f} rows a second; a burst of {figure['burst rows']:,} waiting rows drains "
        f"in {figure['drained seconds']:.0f} s; {figure['minutes']:g} minutes at {figure['steady rate']:,.0f} rows a "
        f"second: largest worker {figure['worker_bytes grown'] / 1e6:+.1f} MB, driver "
        f"{figure['driver_bytes grown'] / 1e6:+.1f} MB, {figure['handles grown']:+.0f} open files, at most "
        f"{figure['pins']} pins, {figure['hot files']} files of hot rows, {figure['log files']} log entries"
        for figure in figures
    )


LOAD = Promise(
    "load",
    "Under load the backlog is bounded, a burst drains, and memory, open files and files stay as they are",
    _cases,
    _figure,
)
