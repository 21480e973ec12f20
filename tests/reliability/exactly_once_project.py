"""A pipeline whose every row can be accounted for: unique ids in, master rows that tell their version, ids out."""

from __future__ import annotations

import base64
import json
import random
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import semistream as ss

sys.path.insert(0, str(Path(__file__).parents[1]))

from servers.kafka import KafkaBroker

PRODUCTS = 2_000
_PIPELINE = """\
[pipeline]
name = "exactly-once"
checkpoint = "state"
[source]
{source}
schema = "sale_id BIGINT, product_id BIGINT"
{letters}
[enrich]
memory = "8MB"
{wait}
[[dimension]]
table = "products"
on = "product_id"
how = "left"
[sink]
format = "parquet"
path = "warehouse"
[trigger]
{trigger}
[statistics]
json_lines = "lines.jsonl"
[spark]
master = "local[{slots}]"
"spark.log.level" = "WARN"
"spark.sql.shuffle.partitions" = "{shuffles}"
"spark.driver.memory" = "512m"
# Drivers live for seconds here, so that Java had better not compile much.
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""


class MasterChanges(threading.Thread):
    """Merges changes into the master table and vacuums it, over and over, until it is told to stop.

    The column `changed` of a row tells which version changed it last, so that rows tell what version was joined.
    """

    def __init__(self, table: Path, seed: int, every_seconds: float) -> None:
        super().__init__(daemon=True)
        self._random = np.random.default_rng(seed)
        self._every_seconds = every_seconds
        self._changed = np.ones(PRODUCTS, np.int64)
        self._stopped = threading.Event()
        self.error: BaseException | None = None
        self.table = ss.MasterTable.build(self._rows(np.arange(PRODUCTS)), table, key="product_id")
        self.versions = {1: self._changed.copy()}
        """By version, what the column `changed` holds for each product."""

    def run(self) -> None:
        """Merge and vacuum."""
        try:
            while not self._stopped.wait(self._every_seconds):
                version = max(self.versions) + 1
                products = np.flatnonzero(self._random.random(PRODUCTS) < 0.3)
                self._changed[products] = version
                self.versions[version] = self._changed.copy()
                merged = self.table.merge(self._rows(products))
                assert merged == version, f"expected version {version}, but the merge made {merged}"
                self.table.vacuum()
        except BaseException as error:
            self.error = error

    def stop(self) -> None:
        """End after the merge that is under way, and raise what went wrong."""
        self._stopped.set()
        self.join()
        if self.error is not None:
            raise self.error

    def _rows(self, products: np.ndarray) -> pa.Table:
        return pa.table({"product_id": products, "changed": self._changed[products], "pad": ["x" * 40] * len(products)})


@dataclass
class Accounts:
    """What is missing or too much; all must be zero."""

    rows: int = 0
    missing: int = 0
    extra: int = 0
    mixed_batches: int = 0
    """Batches whose rows are of more than one version of the master table."""
    letters_missing: int = 0
    letters_extra: int = 0
    miscounted_batches: int = 0
    """Batches that the statistics tell twice, or with another number of rows than they have."""
    batches: int = 0
    versions: set[int] = field(default_factory=set)

    def check(self) -> None:
        """Raise an error unless the accounts balance."""
        wrong = {
            "missing ids": self.missing,
            "ids too many": self.extra,
            "batches with rows of several versions": self.mixed_batches,
            "missing dead letters": self.letters_missing,
            "dead letters too many": self.letters_extra,
            "batches with wrong statistics": self.miscounted_batches,
        }
        assert not any(wrong.values()), wrong


class Project:
    """The folder of the pipeline: its file, what arrives, and what came of it."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        *,
        ids: int,
        files: int,
        dead_letters: bool,
        slots: int = 2,
        max_wait: str | None = None,
        broker: KafkaBroker | None = None,
    ) -> None:
        """Make it; with a broker the lines of a file arrive as messages of a topic."""
        self._broker = broker
        self._topic = f"sales-{uuid.uuid4().hex[:8]}"
        if broker is None:
            self._source = 'format = "json"\npath = "incoming"\nmax_files_per_trigger = 1'
        else:
            broker.create(self._topic)
            self._source = f'format = "kafka"\nservers = "{broker.servers}"\ntopic = "{self._topic}"\n'
            self._source += f"max_rows_per_trigger = {ids // files}"
        self.folder = folder
        self.file = folder / "pipeline.toml"
        self.checkpoint = folder / "state"
        self.sink = folder / "warehouse"
        self._ids = ids
        self._dead_letters = dead_letters
        self._slots = slots
        self._max_wait = max_wait
        self._waiting = iter(self._files(random.Random(seed), files))
        (folder / "incoming").mkdir()
        self.describe(available_now=False)

    def describe(self, *, available_now: bool, life: int = 0) -> None:
        """Write the pipeline's file; with a room, each life has other cores and settings of shuffles."""
        slots = self._slots if self._max_wait is None else 1 + (self._slots + life - 1) % 3
        wait = f'max_wait = "{self._max_wait}"' if self._max_wait else ""
        trigger = "available_now = true" if available_now else ""
        letters = 'dead_letters = "letters"' if self._dead_letters else ""
        settings = {"trigger": trigger, "letters": letters, "slots": slots, "wait": wait, "shuffles": 1 + life % 4}
        self.file.write_text(_PIPELINE.format(source=self._source, **settings))

    def arrive(self, files: int | None = None) -> int:
        """Let so many more files arrive, or all that are left; returns how many did."""
        arrived = 0
        for name, text in self._waiting:
            if self._broker is not None:
                self._broker.send(self._topic, text.splitlines())
            else:
                hidden = self.folder / "incoming" / f".{name}"
                hidden.write_text(text)
                hidden.rename(hidden.with_name(name))
            arrived += 1
            if arrived == files:
                break
        return arrived

    def accounts(self, versions: dict[int, np.ndarray]) -> Accounts:
        """Compare what was written with what arrived."""
        accounts_of_run = Accounts()
        seen: Counter[int] = Counter()
        counted = self._told()
        for batch, rows in self.batches():
            accounts_of_run.batches += 1
            seen.update(rows["sale_id"].to_pylist())
            fitting = _fitting(rows, versions)
            accounts_of_run.mixed_batches += not fitting
            accounts_of_run.versions.update(fitting[-1:])
            accounts_of_run.miscounted_batches += counted.get(batch, [rows.num_rows]) != [rows.num_rows]
        accounts_of_run.rows = seen.total()
        accounts_of_run.missing = sum(number not in seen for number in range(self._ids))
        accounts_of_run.extra = seen.total() - sum(number in seen for number in range(self._ids))
        if self._dead_letters:
            letters = Counter(self._letters())
            wanted = {name for name, _ in self._names}
            accounts_of_run.letters_missing = sum(name not in letters for name in wanted)
            accounts_of_run.letters_extra = letters.total() - sum(name in letters for name in wanted)
        return accounts_of_run

    def batches(self) -> Iterator[tuple[int, pa.Table]]:
        """Yield the rows of each batch that the sink has, as its log lists them."""
        seen: set[str] = set()
        log = self.sink / "_spark_metadata"
        entries = {int(entry.name.split(".")[0]): entry for entry in log.iterdir() if entry.name[0].isdigit()}
        for batch, entry in sorted(entries.items()):
            paths = [json.loads(line)["path"] for line in entry.read_text().splitlines()[1:]]
            new = [path for path in paths if path not in seen]
            seen.update(new)
            tables = [pq.read_table(path.removeprefix("file://")) for path in new]
            filled = [table for table in tables if table.num_rows]
            if filled:
                yield batch, pa.concat_tables(filled)

    def _files(self, generator: random.Random, count: int) -> list[tuple[str, str]]:
        self._names = []
        size = self._ids // count
        for number in range(count):
            lines = [
                json.dumps({"sale_id": sale, "product_id": min(PRODUCTS - 1, int(generator.paretovariate(0.5)) - 1)})
                for sale in range(number * size, self._ids if number == count - 1 else (number + 1) * size)
            ]
            if self._dead_letters:
                lines.insert(generator.randrange(len(lines) + 1), f"poison of {number:05d}.json")
            self._names.append((f"{number:05d}.json", "".join(f"{line}\n" for line in lines)))
        return self._names

    def _letters(self) -> Iterator[str]:
        for file in (self.folder / "letters").glob("batch=*/part-*.json"):
            for line in file.read_text().splitlines():
                letter = json.loads(line)
                if self._broker is not None:
                    yield base64.b64decode(letter["value"]).decode().removeprefix("poison of ")
                    continue
                assert letter["record"] == f"poison of {Path(letter['file']).name}"
                yield Path(letter["file"]).name

    def waited(self) -> int:
        """Return how many rows waited after a batch, summed over all batches that were told of."""
        file = self.folder / "lines.jsonl"
        return sum(json.loads(line).get("waiting", 0) for line in file.read_text().splitlines()) if file.exists() else 0

    def _told(self) -> dict[int, list[int]]:
        """Return what the statistics tell about each batch: usually one number of rows."""
        counted: dict[int, list[int]] = {}
        file = self.folder / "lines.jsonl"
        for line in file.read_text().splitlines() if file.exists() else []:
            batch = json.loads(line)
            # A batch that the sink had already when its driver was killed is not joined again.
            if batch.get("rows_out"):
                counted.setdefault(batch["batch_id"], []).append(batch["rows_out"])
        return counted


def _fitting(rows: pa.Table, versions: dict[int, np.ndarray]) -> list[int]:
    """Return the versions that all rows of a batch can be of."""
    assert pc.all(pc.is_valid(rows["changed"])).as_py(), "every product has a master row"
    products, changed = rows["product_id"].to_numpy(), rows["changed"].to_numpy()
    return [version for version, expected in versions.items() if np.array_equal(expected[products], changed)]
