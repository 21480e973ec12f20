"""Every row exactly once: drivers and workers are killed while the master table is merged and vacuumed."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from campaign import Case, Figures, Promise
from exactly_once_project import MasterChanges, Project
from pipeline_process import PipelineProcess, kill_at_once, newest_finished, newest_planned, newest_written, wait_until

from semistream.pipeline.jars import FOLDER_VARIABLE
from servers.kafka import KafkaBroker
from servers.spark_jars import servers_folder

POINTS = ("before the write", "after the files", "after the sink's commit", "after Spark's commit log", "at any time")
_LOST = "Lost task "
_SECONDS_TO_START = 240.0
_SECONDS_FOR_A_BATCH = 120.0
_SECONDS_TO_FINISH = 900.0


@dataclass(frozen=True)
class Plan:
    """How much a case does."""

    seed: int
    ids: int
    files: int
    driver_kills: int
    worker_kills: int
    dead_letters: bool = False
    slots: int = 2
    merge_every_seconds: float = 1.0
    max_wait: str | None = None
    """How long rows may wait between micro-batches."""
    kafka: bool = False
    """Whether rows come from a topic of Kafka, not from files."""
    stops: int = 0
    """How many of the drivers that are killed are asked to stop, by SIGINT and SIGTERM in turn."""
    lose_a_task: bool = False
    """Whether workers are killed while they have a task for certain, since a worker may be idle for a moment."""


def run(plan: Plan, folder: Path) -> Figures:
    """Kill a pipeline over and over, let it finish, and account for every row."""
    if not plan.kafka:
        return _run(plan, folder, None)
    # The pipelines find the connector's jars where the tests do.
    os.environ.setdefault(FOLDER_VARIABLE, str(servers_folder()))
    broker = KafkaBroker()
    broker.start()
    try:
        return _run(plan, folder, broker)
    finally:
        broker.stop()


def _run(plan: Plan, folder: Path, broker: KafkaBroker | None) -> Figures:
    generator = random.Random(plan.seed)
    project = Project(
        folder,
        plan.seed,
        ids=plan.ids,
        files=plan.files,
        dead_letters=plan.dead_letters,
        slots=plan.slots,
        max_wait=plan.max_wait,
        broker=broker,
    )
    changes = MasterChanges(folder / "products", plan.seed, plan.merge_every_seconds)
    changes.start()
    lives = plan.driver_kills + 1
    states: Counter[str] = Counter()
    killed_workers = lost_tasks = 0
    try:
        for life in range(lives):
            last = life == lives - 1
            wanted = plan.worker_kills * (life + 1) // lives - killed_workers
            project.arrive(None if last else plan.files // lives)
            project.describe(available_now=last, life=life)
            process = PipelineProcess(project.file)
            try:
                killed_workers += _kill_workers(process, project, generator, wanted)
                if plan.lose_a_task and not last:
                    killed_workers += _lose_a_task(process, project)
                if last:
                    code = process.wait(_SECONDS_TO_FINISH)
                    assert code == 0, f"the last run ended with {code}: {process.said()[-3000:]}"
                elif life < plan.stops:
                    _stop_driver(process, project, signal.SIGINT if life % 2 else signal.SIGTERM)
                    states[state(project)] += 1
                else:
                    states[_kill_driver(process, project, POINTS[(plan.seed + life) % len(POINTS)], generator)] += 1
            finally:
                process.end()
        said = process.said()
        lost_tasks = said.count(_LOST)
    finally:
        changes.stop()
    accounts = project.accounts(changes.versions)
    accounts.check()
    return {
        "ids": accounts.rows,
        "batches": accounts.batches,
        "versions": len(accounts.versions),
        "master versions": len(changes.versions),
        "driver kills": plan.driver_kills,
        "worker kills": killed_workers,
        "lost tasks": lost_tasks,
        "states": dict(states),
        "letters": plan.files if plan.dead_letters else 0,
        "waited": project.waited(),
    }


def _kill_workers(process: PipelineProcess, project: Project, generator: random.Random, wanted: int) -> int:
    """Kill workers one after the other, each while a batch is under way; ends when there is nothing more to do."""
    killed = 0
    idle_since = None
    limit = time.monotonic() + _SECONDS_TO_START + wanted * _SECONDS_FOR_A_BATCH
    while killed < wanted:
        if time.monotonic() > limit:
            raise TimeoutError(f"{killed} of {wanted} workers could be killed: {process.said()[-3000:]}")
        code = process.exit_code
        assert code is None or code == 0, f"the run ended with {code}: {process.said()[-3000:]}"
        if code == 0:
            break
        under_way = _under_way(project)
        workers = process.workers() if under_way else []  # takes long enough that the batch may have ended meanwhile
        if workers and _under_way(project) and kill_at_once(generator.choice(workers)):
            killed += 1
            batch = newest_planned(project.checkpoint)
            # A task is tried four times, so that a batch loses two workers at most.
            if killed % 2 == 0:
                wait_until(
                    lambda batch=batch: newest_finished(project.checkpoint) >= batch or process.exit_code is not None,
                    _SECONDS_FOR_A_BATCH,
                    "the end of a batch",
                )
            time.sleep(generator.random() * 0.5)
            idle_since = None
        elif not under_way:
            idle_since = idle_since or time.monotonic()
            if time.monotonic() - idle_since > _SECONDS_TO_START:
                raise TimeoutError(f"no batch was begun: {process.said()[-3000:]}")
            if (
                newest_finished(project.checkpoint) >= 0
                and time.monotonic() - idle_since > 20
                and project.arrive(1) == 0
            ):
                break  # everything has been processed
        time.sleep(0.01 if workers else 0.05)
    return killed


def _lose_a_task(process: PipelineProcess, project: Project) -> int:
    """Hold all workers still, let a file arrive, and kill them when its tasks must be with them."""
    assert project.arrive(1), "a file must be left"
    wait_until(lambda: not _under_way(project) and bool(process.workers()), _SECONDS_FOR_A_BATCH, "a pause", 0.2)
    workers = process.workers()
    for worker in workers:
        worker.suspend()
    project.arrive(1)
    wait_until(lambda: _under_way(project), _SECONDS_FOR_A_BATCH, "a batch for workers that stand still")
    time.sleep(1.0)
    for worker in workers:
        worker.kill()
    wait_until(lambda: _LOST in process.said(), _SECONDS_FOR_A_BATCH, "the loss of a task", 0.2)
    return len(workers)


def _under_way(project: Project) -> bool:
    return newest_planned(project.checkpoint) > newest_finished(project.checkpoint)


def _stop_driver(process: PipelineProcess, project: Project, number: signal.Signals) -> None:
    """Ask the driver to stop after its first batch, as an administrator or a terminal does."""
    first = newest_finished(project.checkpoint)
    wait_until(
        lambda: newest_finished(project.checkpoint) > first or process.exit_code is not None,
        _SECONDS_TO_START,
        "the first batch",
    )
    project.arrive(1)
    code = process.stop(number)
    assert code == 128 + number, f"the stop ended with {code}: {process.said()[-3000:]}"
    assert "Traceback" not in process.said()


def _kill_driver(process: PipelineProcess, project: Project, point: str, generator: random.Random) -> str:
    """Kill the driver at a point of a batch, and return the state in which the kill has left that batch."""
    if newest_planned(project.checkpoint) == newest_finished(project.checkpoint):
        project.arrive(3)
    first = newest_finished(project.checkpoint)
    wait_until(lambda: newest_planned(project.checkpoint) > first, _SECONDS_TO_START, f"a batch after {first}", 0.001)
    batch = newest_planned(project.checkpoint)
    java = process.java()
    if point == "at any time":
        time.sleep(generator.random() * 2)
        process.kill(java if generator.random() < 0.5 else None)
    else:
        # The moments are milliseconds apart: looked for without a pause.
        wait_until(_reached(point, project, batch), _SECONDS_FOR_A_BATCH, f"{point} of batch {batch}", 0)
        process.kill(java)
    return state(project)


def _reached(point: str, project: Project, batch: int) -> Callable[[], bool]:
    log = project.sink / "_spark_metadata"
    match point:
        case "before the write":
            return lambda: newest_planned(project.checkpoint) >= batch
        case "after the files":
            return lambda: bool(_unlisted(project)) or newest_written(project.sink) >= batch
        case "after the sink's commit":
            entries = [log / f"{batch}", log / f"{batch}.compact"]
            return lambda: any(entry.exists() for entry in entries)
        case _:
            return (project.checkpoint / "commits" / f"{batch}").exists


def state(project: Project) -> str:
    """Return how far the newest batch has come."""
    planned, finished = newest_planned(project.checkpoint), newest_finished(project.checkpoint)
    if finished >= planned:
        return "after Spark's commit log"
    if newest_written(project.sink) >= planned:
        return "after the sink's commit"
    return "after the files" if _unlisted(project) else "before the write"


def _unlisted(project: Project) -> list[Path]:
    """Return whole data files that are newer than the last batch of the sink's log."""
    log = project.sink / "_spark_metadata"
    entries = [entry.stat().st_mtime_ns for entry in log.iterdir() if entry.name[0].isdigit()] if log.is_dir() else []
    newest = max(entries, default=0)
    unlisted = []
    for file in project.sink.glob("part-*.parquet"):
        try:
            if file.stat().st_mtime_ns > newest and file.read_bytes()[-4:] == b"PAR1":
                unlisted.append(file)
        except FileNotFoundError:
            continue
    return unlisted


def _cases(seed: int) -> Iterator[Case]:
    for number in range(10):
        plan = Plan(
            seed=seed * 1_000 + number,
            ids=20_000,
            files=40,
            driver_kills=5,
            worker_kills=20,
            dead_letters=number % 4 == 1,
        )
        yield Case(f"run {number}", lambda folder, plan=plan: run(plan, folder))


def _cases_with_a_room(seed: int) -> Iterator[Case]:
    for number in range(10):
        plan = Plan(
            seed=seed * 1_000 + number,
            ids=20_000,
            files=40,
            driver_kills=2,
            worker_kills=7,
            max_wait=f"{1 + number % 4} seconds",
        )
        yield Case(f"run {number}", lambda folder, plan=plan: run(plan, folder))


def _cases_of_kafka(seed: int) -> Iterator[Case]:
    for number in range(5):
        plan = Plan(
            seed=seed * 1_000 + number,
            ids=20_000,
            files=40,
            driver_kills=5,
            worker_kills=10,
            dead_letters=number % 2 == 1,
            kafka=True,
            stops=number % 3,
        )
        yield Case(f"run {number}", lambda folder, plan=plan: run(plan, folder))


def _figure(figures: Sequence[Figures]) -> str:
    def total(name: str) -> int:
        return sum(figure[name] for figure in figures)

    states: Counter[str] = Counter()
    for figure in figures:
        states.update(figure["states"])
    points = ", ".join(f"{states[point]} {point}" for point in POINTS[:-1])
    return (
        f"{total('ids'):,} ids and {total('letters'):,} dead letters, 0 missing, 0 extra; "
        f"{total('driver kills')} drivers killed ({points}), {total('worker kills')} workers killed "
        f"({total('lost tasks')} tasks tried again); {total('batches'):,} batches, each of one version of "
        f"{total('master versions'):,}"
    )


EXACTLY_ONCE = Promise(
    "exactly-once",
    "Every row goes through a pipeline exactly once, whatever is killed when, while the master table changes",
    _cases,
    _figure,
)
WAITING_ROOM = Promise(
    "waiting-room",
    "Every row leaves exactly once where rows may wait between micro-batches, whatever is killed and changed when",
    _cases_with_a_room,
    _figure,
)

EXACTLY_ONCE_FROM_KAFKA = Promise(
    "exactly-once-kafka",
    "Every message of a topic goes through a pipeline exactly once, whatever is killed or stopped when",
    _cases_of_kafka,
    _figure,
)
