"""Processes that refresh a mirror of a real database are killed at random moments, and the mirror is refreshed again.

Run as a program it is such a process.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from campaign import Case, Figures, Promise

sys.path.insert(0, str(Path(__file__).parents[1]))

from table_commands import Model

from semistream.master_table import MasterTable
from semistream.mirrors.database import DatabaseSource
from servers import postgresql

CASES = 5
KILLS_OF_A_CASE = 20
ROWS, CHANGES = 20_000, 400


class Products:
    """A table of PostgreSQL that changes, with a column that grows and one that marks deleted rows."""

    def __init__(self, server: postgresql.PostgresqlServer, name: str) -> None:
        self.server = server
        self.name = name
        self._sql(f"CREATE TABLE {name} (k bigint PRIMARY KEY, v text, stamp bigint NOT NULL, gone boolean NOT NULL)")
        self._sql(f"INSERT INTO {name} SELECT n, 'first ' || n, 1, FALSE FROM generate_series(1, {ROWS}) AS numbers(n)")
        self._sql(f"CREATE INDEX ON {name} (stamp)")
        self.stamp = 1

    @property
    def source(self) -> DatabaseSource:
        """What the mirror is a mirror of; nothing but what has changed is read again."""
        address = self.server.address(self.name, "k").replace("&key=k", "")
        return DatabaseSource(
            address, grows="stamp", deleted="gone", overlap=0, compare_every="never", columns=("k", "v")
        )

    def change(self, chance: random.Random) -> tuple[int, int]:
        """Change, add and delete rows in one transaction; return how many a refresh has to write and to delete."""
        self.stamp += 1
        keys = chance.sample(range(1, ROWS + 1), CHANGES)
        gone, kept = keys[: CHANGES // 8], keys[CHANGES // 8 :]
        before = self.rows()
        kept += [ROWS + self.stamp * 10 + more for more in range(5)]
        values = [(key, f"at {self.stamp}: {key}", self.stamp) for key in kept]
        with self.server.connect() as connection, connection.transaction():
            connection.cursor().executemany(
                f"INSERT INTO {self.name} VALUES (%s, %s, %s, FALSE) "
                f"ON CONFLICT (k) DO UPDATE SET v = excluded.v, stamp = excluded.stamp, gone = FALSE",
                values,
            )
            connection.execute(f"UPDATE {self.name} SET gone = TRUE, stamp = %s WHERE k = ANY(%s)", (self.stamp, gone))
        return len(kept), sum(key in before for key in gone)

    def rows(self) -> Model:
        """Return the rows that are not marked as deleted."""
        return dict(self._sql(f"SELECT k, v FROM {self.name} WHERE NOT gone"))

    def _sql(self, text: str) -> list[tuple[Any, ...]]:
        with self.server.connect() as connection:
            cursor = connection.execute(text)
            return list(cursor.fetchall()) if cursor.description else []


def content(mirror: MasterTable) -> Model:
    """Return all rows of the mirror."""
    import numpy as np

    with mirror.open() as store:
        pages = store.read(np.array([0]), np.array([store.page_count - 1]))
        rows = pages.take(np.arange(len(pages.codes)), ["k", "v"])
        return dict(zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True))


def kill_refreshes(address: str | Path, products: Products, seed: int, kills: int = KILLS_OF_A_CASE) -> Figures:
    """Kill one refresh after the other; each time the next one must do what is left, and nothing twice."""
    chance = random.Random(seed)
    mirror = MasterTable.build(products.source, address, "k", page_bytes=1024)
    typical = 0.1
    before, applied = content(mirror), 0
    for _ in range(kills):
        upserted, deleted = products.change(chance)
        version = mirror.version
        killed_after(str(mirror.address), chance.uniform(0, 1.5 * typical))
        is_applied = mirror.version != version
        mirror.verify()
        source = products.rows()
        assert content(mirror) == (source if is_applied else before), "the mirror is neither old nor new"
        again = mirror.refresh()
        typical = max(typical, again.seconds if not is_applied else 0.0)
        assert content(mirror) == source, "the mirror differs from its source"
        expected = (0, 0) if is_applied else (upserted, deleted)
        assert (again.rows_upserted, again.rows_deleted) == expected, "something was applied twice, or lost"
        assert mirror.version == version + 1, "there is a version too many"
        assert again.position["watermark"] == {"number": products.stamp}
        before = source
        applied += is_applied
    return {"kills": kills, "applied": applied}


def killed_after(address: str, seconds: float) -> None:
    """Start a process that refreshes, and kill it so many seconds after it has begun."""
    command = [sys.executable, __file__, address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("go\n")
        process.stdin.flush()
        time.sleep(seconds)
        process.kill()


def cases(seed: int) -> Iterator[Case]:
    """Make cases of some kills each; each has a server of its own."""
    for number in range(CASES):
        yield Case(f"kills {number}", lambda folder, number=number: _case(folder, seed * 100 + number))


def _case(folder: Path, seed: int) -> Figures:
    server = postgresql.new_server()
    os.environ["PGPASSWORD"] = postgresql.PASSWORD
    try:
        return kill_refreshes(folder / "mirror", Products(server, "products"), seed)
    finally:
        server.stop()


def figure(all_figures: Sequence[Figures]) -> str:
    """Sum up."""
    kills, applied = (sum(figures[name] for figures in all_figures) for name in ("kills", "applied"))
    return f"{kills:,} kills, {applied:,} of them after the commit; 0 mirrors differ, 0 changes applied twice"


PROMISE = Promise(
    "killed-refreshes",
    "A mirror whose refresh is killed equals its source after the next one, and nothing is applied twice",
    cases,
    figure,
)

if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    MasterTable(sys.argv[1]).refresh()
