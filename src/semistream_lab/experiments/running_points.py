"""Runs the points of experiments: each once, in several processes, and only those that are not finished yet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path

from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.core.flat_json import Scalar
from semistream_lab.experiments.measuring import kinds, on_spark, wall_clock
from semistream_lab.experiments.plan import Plan, PlannedPoint
from semistream_lab.experiments.point import Point, Row
from semistream_lab.experiments.results import ResultsFolder
from semistream_lab.experiments.workers import Workers

ON_SPARK = "on-spark"
"""The kind of a point that is counted on Spark."""
Report = Callable[[str, int, int], None]
"""Is told which experiment is worked on, how many points are done, and of how many."""


@dataclass(frozen=True)
class Task:
    """A point to run, and the first place in an experiment where it is needed."""

    experiment: str
    planned: PlannedPoint

    @property
    def point(self) -> Point:
        """The point itself."""
        return self.planned.point


@dataclass(frozen=True)
class Failure:
    """A point that could not be measured."""

    task: Task
    error: str

    @property
    def sentence(self) -> str:
        """What happened, in one sentence."""
        where = f"{self.task.planned.series} at {self.task.planned.x:g}, {self.task.point.ranks}"
        return f"{self.task.experiment} ({where}) failed: {self.error}"

    def row(self) -> dict[str, Scalar]:
        """Return the failure as a flat object."""
        planned = self.task.planned
        return {
            "experiment": self.task.experiment,
            "series": planned.series,
            "x": planned.x,
            "ranks": planned.point.ranks,
            "digest": planned.point.digest,
            "error": self.error,
        }


@dataclass
class Outcome:
    """What a run has done."""

    points: int = 0
    """Different points of all chosen experiments."""
    reused: int = 0
    """Points that were finished before."""
    ran: int = 0
    damaged: list[Path] = field(default_factory=list)
    """Files that were set aside, so that their points were run again."""
    failures: list[Failure] = field(default_factory=list)


def repeated(plan: Plan, repetitions: int | None) -> Plan:
    """Return a plan with the seeds 0, 1, … instead of its own."""
    return plan if repetitions is None else replace(plan, seeds=tuple(range(repetitions)))


def runs_on(plan: Plan, clock: str) -> bool:
    """Say whether an experiment makes sense on a clock: real time knows saturated streams of generated keys only."""
    if clock == "model":
        return True
    points = (one.point for one in plan.points(variants=False))
    return all(point.kind == "rate" and point.data == "zipf" and not point.arrival_rate for point in points)


def run_plans(
    plans: Sequence[Plan],
    folder: ResultsFolder,
    *,
    jobs: int | None = None,
    report: Report | None = None,
) -> Outcome:
    """Run what is not finished of some experiments; each point is saved as soon as it is measured.

    An interrupt loses only the points under way, and a point that fails does not stop the others.
    """
    settings = folder.settings
    for plan in plans:
        if not runs_on(plan, settings.clock):
            raise InvalidSettingError(f"The experiment {plan.id} is for the model clock only: leave it out.")
    with folder.alone():
        folder.remember(plan.id for plan in plans)
        finished = folder.load(set_aside=True)
        tasks = tasks_of(plans, scale=settings.scale, clock=settings.clock)
        missing = [task for task in tasks if task.point.digest not in finished.rows]
        outcome = Outcome(len(tasks), len(tasks) - len(missing), damaged=finished.damaged)
        if settings.clock == "wall":
            jobs = 1  # two runs at a time would wait for each other's reads
            _build_tables(missing, folder, report)
        try:
            _run_tasks(missing, folder, jobs or default_jobs(), outcome, report)
        finally:
            folder.write_failures(failure.row() for failure in outcome.failures)
    return outcome


def tasks_of(plans: Iterable[Plan], *, scale: float, clock: str) -> list[Task]:
    """Return the different points of some experiments, those of variants last, and the largest tables first.

    So a process that takes one after the other finds the table of the last point still there, the longest runs are not
    the last, and what is interrupted has the experiments themselves. In real time the series of a figure take turns at
    each place, since a machine changes within minutes.
    """
    tasks: dict[Point, Task] = {}
    for plan in plans:
        for planned in plan.points(scale=scale, clock=clock):
            tasks.setdefault(planned.point, Task(plan.id, planned))
    return sorted(tasks.values(), key=_turns if clock == "wall" else _largest_first)


def _largest_first(task: Task) -> tuple[float, ...]:
    return float(bool(task.planned.variant)), -task.point.master_rows, -task.point.memory_bytes


def _turns(task: Task) -> tuple[float | str, ...]:
    point = task.point
    return *_largest_first(task), point.ranks, point.exponent, point.seed


def default_jobs() -> int:
    """Return how many points are run at a time: one for each core that this process may use."""
    return len(os.sched_getaffinity(0))


def run_point(point: Point, tables: Path) -> Row:
    """Measure a point on the clock that it wants."""
    if point.kind == ON_SPARK:
        return on_spark.run(point, tables)
    if point.clock == "wall":
        return wall_clock.run(point, tables)
    return kinds.run(point)


def _run_tasks(tasks: list[Task], folder: ResultsFolder, jobs: int, outcome: Outcome, report: Report | None) -> None:
    done = outcome.reused
    by_digest = {task.point.digest: task for task in tasks}

    def tell(digest: str) -> None:
        if report is not None:
            report(by_digest[digest].experiment, done, outcome.points)

    # Points on Spark share a session, and take all cores for themselves.
    alone = [task for task in tasks if task.point.kind == ON_SPARK]
    others = [task for task in tasks if task.point.kind != ON_SPARK]
    first = _one_by_one(others, folder, tell) if jobs == 1 else _side_by_side(others, folder, jobs, tell)
    for digest, error in chain(first, _on_spark(alone, folder, tell)):
        done += 1
        if error:
            outcome.failures.append(Failure(by_digest[digest], error))
        else:
            outcome.ran += 1
        tell(digest)


def _one_by_one(
    tasks: Sequence[Task], folder: ResultsFolder, begins: Callable[[str], None]
) -> Iterable[tuple[str, str]]:
    for task in tasks:
        begins(task.point.digest)
        yield task.point.digest, measure_and_save(task.point, folder)


def _on_spark(tasks: Sequence[Task], folder: ResultsFolder, begins: Callable[[str], None]) -> Iterable[tuple[str, str]]:
    try:
        yield from _one_by_one(tasks, folder, begins)
    finally:
        on_spark.end_session()


def _side_by_side(
    tasks: Sequence[Task], folder: ResultsFolder, jobs: int, begins: Callable[[str], None]
) -> Iterable[tuple[str, str]]:
    with Workers(min(jobs, len(tasks)), measure_and_save, folder) as workers:
        for point, error in workers.run([task.point for task in tasks], lambda point: begins(point.digest)):
            yield point.digest, error


def measure_and_save(point: Point, folder: ResultsFolder) -> str:
    """Measure a point and save its result; returns what went wrong, or nothing."""
    try:
        folder.save(point, run_point(point, folder.tables))
    except SemistreamError as error:
        return " ".join(str(error).split())
    except Exception as error:
        return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".") + "."
    return ""


def _build_tables(tasks: Sequence[Task], folder: ResultsFolder, report: Report | None) -> None:
    for rows in sorted({task.point.master_rows for task in tasks}):
        wall_clock.build_table(rows, folder.tables, partial(_tell_building, report, rows))


def _tell_building(report: Report | None, rows: int, done: int) -> None:
    if report is not None:
        report(f"Building a master table of {rows:,} rows", done, rows)
