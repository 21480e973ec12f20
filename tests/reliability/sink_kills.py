"""Every sink keeps its guarantee: drivers and workers are killed while several pipelines write to real servers.

Each pipeline reads a topic of Kafka and joins two master tables.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from campaign import Case, Figures, Promise
from pipeline_process import PipelineProcess, kill_at_once, newest_finished, newest_planned, newest_written, wait_until

import semistream as ss

sys.path.insert(0, str(Path(__file__).parents[1]))

from servers import mariadb, postgresql
from servers.kafka import KafkaBroker
from servers.spark_jars import servers_folder

SINKS = (
    *("parquet", "delta", "delta-upsert", "postgresql", "postgresql-upsert", "mysql", "mysql-upsert"),
    "kafka",
)
COLUMNS = ("sale_id", "product_id", "customer_id", "price", "segment")
Row = tuple[int | None, ...]
Sale = tuple[int, int, int]
_PRODUCTS = 200
_CUSTOMERS = 1_000
_PIPELINE = """\
[pipeline]
name = "{name}"
checkpoint = "state-{name}"
[source]
format = "kafka"
servers = "{servers}"
topic = "incoming"
schema = "sale_id BIGINT NOT NULL, product_id BIGINT, customer_id BIGINT"
max_rows_per_trigger = {rows_of_a_batch}
[enrich]
memory = "8MB"
[[dimension]]
table = "products"
on = "product_id"
how = "left"
[[dimension]]
table = "customers"
on = "customer_id"
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
_BATCHES_BEFORE_A_KILL = 3
"""Up to so many of each pipeline."""
_SECONDS_TO_START = 400.0
_SECONDS_TO_FINISH = 1_200.0
_CHILD = Path(__file__).with_name("sink_pipelines.py")


@dataclass(frozen=True)
class Plan:
    """How much a case does."""

    seed: int
    sinks: tuple[str, ...]
    kills: int
    parts: int
    rows_of_a_part: int
    worker_kills: int = 0


class Servers:
    """The servers that the sinks of a plan need, on loopback."""

    def __init__(self, sinks: Sequence[str], stack: ExitStack) -> None:
        self.environment = {**os.environ, "SEMISTREAM_JARS": str(servers_folder()), "PYSPARK_PYTHON": sys.executable}
        self.postgresql = self.mariadb = None
        if any(name.startswith("postgresql") for name in sinks):
            self.postgresql = postgresql.new_server()
            stack.callback(self.postgresql.stop)
            self.environment["PGPASSWORD"] = postgresql.PASSWORD
        if any(name.startswith("mysql") for name in sinks):
            self.mariadb = mariadb.new_server()
            stack.callback(self.mariadb.stop)
            self.environment["MYSQL_PWD"] = mariadb.PASSWORD
        self.broker = KafkaBroker()
        self.broker.start()
        stack.callback(self.broker.stop)

    def described(self, sink: str) -> str:
        """Return the keys of [sink]."""
        kind, _, mode = sink.partition("-")
        upsert = 'mode = "upsert"\nkey = "product_id"\norder_by = "sale_id"\n' if mode else ""
        if kind == "kafka":
            return f'format = "kafka"\nservers = "{self.broker.servers}"\ntopic = "sales"'
        server = {"postgresql": self.postgresql, "mysql": self.mariadb}.get(kind)
        if server is None:
            return f'format = "{kind}"\npath = "out-{sink}"\n{upsert}'
        address = server.address(f"sales_{mode or 'append'}").replace("&key=id", "")
        return f'format = "{kind}"\ntable = "{address}"\n{upsert}'

    def rows(self, sink: str) -> list[Row]:
        """Return what a table of a database holds."""
        kind, _, mode = sink.partition("-")
        server = self.postgresql if kind == "postgresql" else self.mariadb
        assert server is not None
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(COLUMNS)} FROM sales_{mode or 'append'}")
            return [tuple(row) for row in cursor.fetchall()]

    @contextmanager
    def watched(self, sink: str, folder: Path) -> Iterator[Callable[[], int]]:
        """Return what tells the newest batch that a sink has, -1 if it has none or does not know."""
        kind = sink.partition("-")[0]
        if kind not in ("postgresql", "mysql"):
            yield lambda: _newest_in_files(sink, folder)
            return
        server = self.postgresql if kind == "postgresql" else self.mariadb
        assert server is not None
        table = f"sales_{sink.partition('-')[2] or 'append'}"
        with server.connect() as connection, connection.cursor() as cursor:

            def newest() -> int:
                try:
                    cursor.execute("SELECT max(batch) FROM semistream_ledger WHERE target LIKE %s", (f"%{table}",))
                except Exception:  # the ledger is not there yet
                    return -1
                number = cursor.fetchone()[0]
                return -1 if number is None else int(number)

            yield newest

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
        sales = _prepare(plan, folder, servers, generator)
        files = [folder / f"{name}.toml" for name in plan.sinks]
        under_way: Counter[str] = Counter()
        between: Counter[str] = Counter()
        killed_workers = killed_drivers = arrived = 0
        for life in range(plan.kills + 1):
            last = life == plan.kills
            wanted_parts = plan.parts if last else max(1, plan.parts * (life + 1) // (plan.kills + 1))
            servers.broker.send("incoming", map(_message, sales[arrived : wanted_parts * plan.rows_of_a_part]))
            arrived = wanted_parts * plan.rows_of_a_part
            before = {name: newest_finished(folder / f"state-{name}") for name in plan.sinks}
            process = _started(files, folder, servers)
            try:
                if last:
                    code = process.wait(_SECONDS_TO_FINISH)
                    assert code == 0, f"the last run ended with {code}: {process.said()[-3000:]}"
                else:
                    wanted = plan.worker_kills * (life + 1) // plan.kills - killed_workers
                    killed, still_ran = _kill_at_random(process, folder, plan.sinks, before, generator, wanted, servers)
                    killed_workers += killed
                    killed_drivers += still_ran
                    between.update(name for name in plan.sinks if _is_between(name, folder, servers))
                    under_way.update(
                        name
                        for name in plan.sinks
                        if newest_planned(folder / f"state-{name}") > newest_finished(folder / f"state-{name}")
                    )
            finally:
                process.end()
        figures = _accounts(plan, folder, servers, sales)
    return {
        **figures,
        "kills": killed_drivers,
        "worker kills": killed_workers,
        "under way": dict(under_way),
        "between": dict(between),
    }


def _prepare(plan: Plan, folder: Path, servers: Servers, generator: random.Random) -> list[Sale]:
    """Build the master tables, write the pipelines and return what will arrive: sale, product and customer."""
    products = pa.table({"product_id": range(_PRODUCTS), "price": [7 * product for product in range(_PRODUCTS)]})
    ss.MasterTable.build(products, folder / "products", key="product_id")
    # Every third customer is unknown.
    known = [customer for customer in range(_CUSTOMERS) if customer % 3]
    customers = pa.table({"customer_id": known, "segment": [customer % 5 for customer in known]})
    ss.MasterTable.build(customers, folder / "customers", key="customer_id")
    for name in plan.sinks:
        text = _PIPELINE.format(
            name=name,
            sink=servers.described(name),
            servers=servers.broker.servers,
            rows_of_a_batch=plan.rows_of_a_part,
        )
        (folder / f"{name}.toml").write_text(text)
    servers.broker.create("incoming")
    count = plan.parts * plan.rows_of_a_part
    return [(sale, generator.randrange(_PRODUCTS), generator.randrange(_CUSTOMERS)) for sale in range(count)]


def _message(sale: Sale) -> str:
    return json.dumps(dict(zip(COLUMNS, sale, strict=False)))


def enriched(sale: Sale) -> Row:
    """Return what a sale must become."""
    _, product, customer = sale
    return (*sale, 7 * product, customer % 5 if customer % 3 else None)


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
    servers: Servers,
) -> tuple[int, bool]:
    """Kill workers, then the driver with or without its Java; returns how many workers, and whether the driver ran.

    The moment is counted in batches that have ended since the start, so that a slow machine meets the same ones. Half
    of the kills then wait until a sink has a batch that Spark's log has not: the one moment when a batch is repeated
    that is there already. Only workers tell that a batch is under way: what a killed driver has left looks as if one
    were.
    """

    def ended() -> bool:
        assert process.exit_code in (None, 0), process.said()[-3000:]
        return process.exit_code == 0

    def finished() -> int:
        return sum(newest_finished(folder / f"state-{name}") - before[name] for name in sinks)

    wait_until(lambda: ended() or bool(process.workers()), _SECONDS_TO_START, "a worker", 0.1)
    killed = 0
    for _ in range(worker_kills):
        time.sleep(generator.random())
        wait_until(lambda: ended() or bool(process.workers()), _SECONDS_TO_START, "a worker", 0.1)
        workers = process.workers()
        killed += bool(workers) and kill_at_once(generator.choice(workers))
    batches = generator.randrange(_BATCHES_BEFORE_A_KILL * len(sinks))
    wait_until(lambda: ended() or finished() >= batches, _SECONDS_TO_FINISH, f"{batches} batches")
    if generator.random() < 0.5:
        name = generator.choice([sink for sink in sinks if sink != "kafka"])
        state = folder / f"state-{name}"
        with servers.watched(name, folder) as newest:
            # Without a pause, since the moment is short.
            wait_until(
                lambda: ended() or newest() >= newest_planned(state) > newest_finished(state),
                _SECONDS_TO_FINISH,
                f"a batch of {name} between its commit and Spark's",
                0,
            )
            process.kill(process.java())
            return killed, process.exit_code != 0
    time.sleep(generator.random())
    java = process.java() if generator.random() < 0.5 else None
    still_ran = process.exit_code is None
    process.kill(java)
    return killed, still_ran


def _is_between(sink: str, folder: Path, servers: Servers) -> bool:
    state = folder / f"state-{sink}"
    with servers.watched(sink, folder) as newest:
        return newest() >= newest_planned(state) > newest_finished(state)


def _newest_in_files(sink: str, folder: Path) -> int:
    if sink == "parquet":
        return newest_written(folder / "out-parquet")
    # A table of Delta that is made for upserts has a version before its first batch.
    log = folder / f"out-{sink}" / "_delta_log"
    versions = [int(entry.stem) for entry in log.glob("*.json") if entry.stem.isdigit()]
    return max(versions, default=-1) - sink.endswith("upsert")


def _accounts(plan: Plan, folder: Path, servers: Servers, sales: Sequence[Sale]) -> dict[str, Any]:
    """Raise an error unless every table holds exactly what it should."""
    repeats = 0
    held = json.loads((folder / "held.json").read_text())
    for name in plan.sinks:
        if name == "kafka":
            repeats = check_messages(held[name], sales)
            continue
        if name == "parquet":
            rows = _parquet_rows(folder / "out-parquet")
        else:
            rows = servers.rows(name) if held[name] is None else [tuple(row) for row in held[name]]
        check_rows(name, rows, sales)
        if name.startswith(("postgresql", "mysql")):
            assert servers.leftovers(name) == 0, f"{name} has left staging tables behind"
    return {"rows": len(sales) * len(plan.sinks), "repeated messages": repeats}


def check_rows(name: str, rows: Sequence[Row], sales: Sequence[Sale]) -> None:
    """Raise an error unless a table holds each sale once, or of each product the newest one."""
    newest = {sale[1]: sale for sale in sales}
    found, right = Counter(rows), Counter(map(enriched, newest.values() if name.endswith("upsert") else sales))
    missing, extra = right - found, found - right
    assert missing.total() + extra.total() == 0, f"{name}: {missing.total()} missing, {extra.total()} extra"


def check_messages(messages: Sequence[dict[str, Any]], sales: Sequence[Sale]) -> int:
    """Check that no message is missing and that repeats have the id of the first; returns how many there are."""
    ids: dict[str, Row] = {}
    for message in messages:
        row = tuple(message.get(name) for name in COLUMNS)
        assert ids.setdefault(message["semistream_id"], row) == row, "an id stands for one row"
    assert Counter(ids.values()) == Counter(map(enriched, sales)), "without repeats every row is there once"
    return len(messages) - len(ids)


def _parquet_rows(folder: Path) -> list[Row]:
    files: list[str] = []
    log = folder / "_spark_metadata"
    entries = {int(entry.name.split(".")[0]): entry for entry in log.iterdir() if entry.name[0].isdigit()}
    for entry in entries.values():
        paths = [json.loads(line)["path"].removeprefix("file://") for line in entry.read_text().splitlines()[1:]]
        files += [path for path in paths if path not in files]
    tables = [pq.read_table(file) for file in files]
    rows = pa.concat_tables([table for table in tables if table.num_rows]).to_pylist()
    return [tuple(row[name] for name in COLUMNS) for row in rows]


def _cases(seed: int) -> Iterator[Case]:
    for number in range(4):
        plan = Plan(seed=seed * 1_000 + number, sinks=SINKS, kills=5, parts=24, rows_of_a_part=500, worker_kills=5)
        yield Case(f"run {number}", lambda folder, plan=plan: run(plan, folder))


def _figure(figures: Sequence[Figures]) -> str:
    under_way: Counter[str] = Counter()
    between: Counter[str] = Counter()
    for figure in figures:
        under_way.update(figure["under way"])
        between.update(figure["between"])
    in_a_batch = ", ".join(f"{name} {under_way[name]}, of these written already {between[name]}" for name in SINKS)
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
