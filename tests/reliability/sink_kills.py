"""Every sink keeps its guarantee: drivers and workers are killed while several pipelines write to real servers."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from campaign import Case, Figures, Promise
from pipeline_process import PipelineProcess, kill_at_once, newest_finished, newest_planned, wait_until

import semistream as ss

sys.path.insert(0, str(Path(__file__).parents[1]))

from servers import mariadb, postgresql
from servers.kafka import KafkaBroker
from servers.spark_jars import servers_folder

SINKS = (
    *("parquet", "delta", "delta-upsert", "postgresql", "postgresql-upsert", "mysql", "mysql-upsert"),
    "kafka",
)
_PRODUCTS = 200
_PIPELINE = """\
[pipeline]
name = "{name}"
checkpoint = "state-{name}"
[source]
format = "json"
path = "incoming"
schema = "sale_id BIGINT, product_id BIGINT"
max_files_per_trigger = 1
[enrich]
memory = "8MB"
[[dimension]]
table = "products"
on = "product_id"
how = "left"
[sink]
{sink}
[trigger]
available_now = true
[spark]
master = "local[2]"
"spark.driver.memory" = "1g"
"spark.databricks.delta.snapshotPartitions" = 1
"spark.sql.shuffle.partitions" = 1
# Drivers live for seconds here, so that Java had better not compile much.
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""
_SECONDS_TO_START = 400.0
_SECONDS_TO_FINISH = 1_200.0
_CHILD = Path(__file__).with_name("sink_pipelines.py")


@dataclass(frozen=True)
class Plan:
    """How much a case does."""

    seed: int
    sinks: tuple[str, ...]
    kills: int
    files: int
    rows_of_a_file: int
    worker_kills: int = 0


class Servers:
    """The servers that the sinks of a plan need, on loopback."""

    def __init__(self, sinks: Sequence[str], stack: ExitStack) -> None:
        self.environment = {**os.environ, "SEMISTREAM_JARS": str(servers_folder()), "PYSPARK_PYTHON": sys.executable}
        self.postgresql = self.mariadb = self.broker = None
        if any(name.startswith("postgresql") for name in sinks):
            self.postgresql = postgresql.new_server()
            stack.callback(self.postgresql.stop)
            self.environment["PGPASSWORD"] = postgresql.PASSWORD
        if any(name.startswith("mysql") for name in sinks):
            self.mariadb = mariadb.new_server()
            stack.callback(self.mariadb.stop)
            self.environment["MYSQL_PWD"] = mariadb.PASSWORD
        if "kafka" in sinks:
            self.broker = KafkaBroker()
            self.broker.start()
            stack.callback(self.broker.stop)

    def described(self, sink: str) -> str:
        """Return the keys of [sink]."""
        kind, _, mode = sink.partition("-")
        upsert = 'mode = "upsert"\nkey = "product_id"\norder_by = "sale_id"\n' if mode else ""
        if kind == "kafka":
            assert self.broker is not None
            return f'format = "kafka"\nservers = "{self.broker.servers}"\ntopic = "sales"'
        server = {"postgresql": self.postgresql, "mysql": self.mariadb}.get(kind)
        if server is None:
            return f'format = "{kind}"\npath = "out-{sink}"\n{upsert}'
        address = server.address(f"sales_{mode or 'append'}").replace("&key=id", "")
        return f'format = "{kind}"\ntable = "{address}"\n{upsert}'

    def rows(self, sink: str) -> list[tuple[int, int, int]]:
        """Return what a table of a database holds: sale, product and price."""
        kind, _, mode = sink.partition("-")
        server = self.postgresql if kind == "postgresql" else self.mariadb
        assert server is not None
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT sale_id, product_id, price FROM sales_{mode or 'append'}")
            return [tuple(row) for row in cursor.fetchall()]

    def leftovers(self, sink: str) -> int:
        """Return how many staging tables are there."""
        kind = sink.partition("-")[0]
        server = self.postgresql if kind == "postgresql" else self.mariadb
        assert server is not None
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'semistream%'")
            return sum(name != "semistream_ledger" for (name,) in cursor.fetchall())


def run(plan: Plan, folder: Path) -> Figures:
    """Kill the process of all pipelines over and over, let them finish, and account for every row."""
    generator = random.Random(plan.seed)
    with ExitStack() as stack:
        servers = Servers(plan.sinks, stack)
        arrived = _prepare(plan, folder, servers, generator)
        files = [folder / f"{name}.toml" for name in plan.sinks]
        under_way: Counter[str] = Counter()
        killed_workers = 0
        for life in range(plan.kills + 1):
            last = life == plan.kills
            arrived_now = plan.files if last else max(1, plan.files * (life + 1) // (plan.kills + 1))
            _arrive(folder, arrived_now)
            before = {name: newest_finished(folder / f"state-{name}") for name in plan.sinks}
            process = _started(files, folder, servers)
            try:
                if last:
                    code = process.wait(_SECONDS_TO_FINISH)
                    assert code == 0, f"the last run ended with {code}: {process.said()[-3000:]}"
                else:
                    wanted = plan.worker_kills * (life + 1) // plan.kills - killed_workers
                    killed_workers += _kill_at_random(process, folder, plan.sinks, before, generator, wanted)
                    under_way.update(
                        name
                        for name in plan.sinks
                        if newest_planned(folder / f"state-{name}") > newest_finished(folder / f"state-{name}")
                    )
            finally:
                process.end()
        figures = _accounts(plan, folder, servers, arrived)
    return {**figures, "kills": plan.kills, "worker kills": killed_workers, "under way": dict(under_way)}


def _prepare(plan: Plan, folder: Path, servers: Servers, generator: random.Random) -> list[tuple[int, int]]:
    """Build the master table, write the pipelines and what will arrive; returns all sales."""
    products = pa.table({"product_id": range(_PRODUCTS), "price": [7 * product for product in range(_PRODUCTS)]})
    ss.MasterTable.build(products, folder / "products", key="product_id")
    for name in plan.sinks:
        (folder / f"{name}.toml").write_text(_PIPELINE.format(name=name, sink=servers.described(name)))
    (folder / "incoming").mkdir()
    (folder / "waiting").mkdir()
    sales = []
    for file in range(plan.files):
        first = file * plan.rows_of_a_file
        of_file = [(first + number, generator.randrange(_PRODUCTS)) for number in range(plan.rows_of_a_file)]
        lines = [json.dumps({"sale_id": sale, "product_id": product}) for sale, product in of_file]
        (folder / "waiting" / f"{file:05d}.json").write_text("\n".join(lines) + "\n")
        sales += of_file
    return sales


def _arrive(folder: Path, count: int) -> None:
    """Let the first files arrive, as far as they have not yet."""
    for file in range(count):
        waiting = folder / "waiting" / f"{file:05d}.json"
        if waiting.exists():
            waiting.rename(folder / "incoming" / waiting.name)


def _started(files: Sequence[Path], folder: Path, servers: Servers) -> PipelineProcess:
    command = [sys.executable, str(_CHILD), str(folder / "held.json"), *map(str, files)]
    return PipelineProcess(files[0], log=folder / "said.log", command=command, environment=servers.environment)


def _kill_at_random(
    process: PipelineProcess,
    folder: Path,
    sinks: Sequence[str],
    before: Mapping[str, int],
    generator: random.Random,
    worker_kills: int,
) -> int:
    """Kill the driver, with or without its Java, some moment after a pipeline has begun a new batch."""

    def begun() -> bool:
        assert process.exit_code is None or process.exit_code == 0, process.said()[-3000:]
        return process.exit_code == 0 or any(newest_planned(folder / f"state-{name}") > before[name] for name in sinks)

    wait_until(begun, _SECONDS_TO_START, "a batch")
    killed = 0
    for _ in range(worker_kills):
        time.sleep(generator.random())
        workers = process.workers()
        if workers:
            killed += kill_at_once(generator.choice(workers))
    time.sleep(generator.random() * 4)
    process.kill(process.java() if generator.random() < 0.5 else None)
    return killed


def _accounts(plan: Plan, folder: Path, servers: Servers, sales: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Raise an error unless every table holds exactly what it should."""
    wanted = Counter((sale, product, 7 * product) for sale, product in sales)
    newest = {product: (sale, product, 7 * product) for sale, product in sales}
    repeats = 0
    held = json.loads((folder / "held.json").read_text())
    for name in plan.sinks:
        if name == "kafka":
            repeats = _check_messages(held[name], wanted)
            continue
        if name == "parquet":
            rows = _parquet_rows(folder / "out-parquet")
        else:
            rows = servers.rows(name) if held[name] is None else [tuple(row) for row in held[name]]
        found, right = Counter(rows), Counter(newest.values()) if name.endswith("upsert") else wanted
        missing, extra = right - found, found - right
        assert missing.total() + extra.total() == 0, f"{name}: {missing.total()} missing, {extra.total()} extra"
        if name.startswith(("postgresql", "mysql")):
            assert servers.leftovers(name) == 0, f"{name} has left staging tables behind"
    return {"rows": len(sales) * len(plan.sinks), "repeated messages": repeats}


def _check_messages(messages: Sequence[dict[str, Any]], wanted: Counter[tuple[int, int, int]]) -> int:
    """Check that no message is missing and that repeats have the id of the first; returns how many there are."""
    ids: dict[str, tuple[int, int, int]] = {}
    for message in messages:
        row = (message["sale_id"], message["product_id"], message["price"])
        assert ids.setdefault(message["semistream_id"], row) == row, "an id stands for one row"
    assert Counter(ids.values()) == wanted, "without repeats every row is there once"
    return len(messages) - len(ids)


def _parquet_rows(folder: Path) -> list[tuple[int, int, int]]:
    files: list[str] = []
    log = folder / "_spark_metadata"
    entries = {int(entry.name.split(".")[0]): entry for entry in log.iterdir() if entry.name[0].isdigit()}
    for entry in entries.values():
        paths = [json.loads(line)["path"].removeprefix("file://") for line in entry.read_text().splitlines()[1:]]
        files += [path for path in paths if path not in files]
    tables = [pq.read_table(file) for file in files]
    rows = pa.concat_tables([table for table in tables if table.num_rows]).to_pylist()
    return [(row["sale_id"], row["product_id"], row["price"]) for row in rows]


def _cases(seed: int) -> Iterator[Case]:
    for number in range(4):
        plan = Plan(seed=seed * 1_000 + number, sinks=SINKS, kills=5, files=24, rows_of_a_file=500, worker_kills=5)
        yield Case(f"run {number}", lambda folder, plan=plan: run(plan, folder))


def _figure(figures: Sequence[Figures]) -> str:
    under_way: Counter[str] = Counter()
    for figure in figures:
        under_way.update(figure["under way"])
    in_a_batch = ", ".join(f"{name} {under_way[name]}" for name in SINKS)
    return (
        f"{sum(figure['rows'] for figure in figures):,} rows, 0 missing, 0 extra; "
        f"{sum(figure['kills'] for figure in figures)} drivers killed (in a batch: {in_a_batch}), "
        f"{sum(figure['worker kills'] for figure in figures)} workers; "
        f"{sum(figure['repeated messages'] for figure in figures):,} messages repeated, each with its id"
    )


SINK_KILLS = Promise(
    "sinks",
    "Every row reaches Parquet, Delta, PostgreSQL and MariaDB exactly once and Kafka at least once, whatever is killed",
    _cases,
    _figure,
)
