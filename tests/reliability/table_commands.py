"""What is done to master tables in the campaign, and what must be true afterwards whatever went wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.core.errors import MasterNotFoundError
from semistream.engine.cache.hot_rows import HotRows
from semistream.master_table import MasterTable
from semistream.spark.saved_cache import SavedCache
from semistream.store.paged.versions import manifest, pins
from semistream.store.places.local_folder import LocalFolder
from semistream.store.tables import table_at

Model = dict[int, str]
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string())])
ROWS = 240
"""Some pages of 512 bytes, so that a command takes some ten calls and milliseconds."""


def rows_of(model: Model) -> pa.Table:
    """Return the rows of a model, not in their order."""
    keys = sorted(model, key=lambda key: (key * 7919) % 1009)
    return pa.table({"k": keys, "v": [model[key] for key in keys]}, schema=SCHEMA)


def content(table: MasterTable, version: int | None = None) -> Model:
    """Return all rows of a version."""
    with table.open(version) as store:
        if not store.page_count:
            return {}
        pages = store.read(np.array([0]), np.array([store.page_count - 1]))
        rows = pages.take(np.arange(len(pages.codes)), ["k", "v"])
        return dict(zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True))


def values(start: int, text: str, step: int = 1) -> Model:
    """Return some rows that differ from others of the same keys."""
    return {key: f"{text} {key:012d}" for key in range(start, ROWS, step)}


@dataclass(frozen=True)
class Sample:
    """A table of some versions and what each of them holds."""

    path: Path
    versions: dict[int, Model]

    @property
    def table(self) -> MasterTable:
        """The table."""
        return MasterTable(self.path)

    def copied(self, path: Path) -> Sample:
        """Return a copy at another place."""
        if self.path.exists():
            shutil.copytree(self.path, path)
        return Sample(path, self.versions)


def sample(path: Path) -> Sample:
    """Build a table of four versions; version 2 is pinned, and rows are saved beside it."""
    first = values(0, "first")
    table = MasterTable.build(rows_of(first), path, "k", page_bytes=512)
    second = first | values(0, "second", 60)
    table.merge(rows_of(values(0, "second", 60)))
    pins.pin(LocalFolder(path), "query", 6)
    third = second | values(3, "third", 90)
    table.merge(rows_of(values(3, "third", 90)))
    table.merge(deletes=pa.table({"k": [5, 6, 7]}))
    fourth = {key: value for key, value in third.items() if key not in (5, 6, 7)}
    save_hot_rows(path, "saved")
    return Sample(path, {1: first, 2: second, 3: third, 4: fourth})


def hot_rows_file(path: Path, kind: str = "some kind of cache") -> SavedCache:
    """Return the file of rows that a worker has saved."""
    beside = table_at(path).saved_rows
    assert beside is not None
    return SavedCache(beside, kind)


def save_hot_rows(path: Path, text: str, kind: str = "some kind of cache") -> None:
    """Save rows as a worker does."""
    codes = np.arange(40, dtype=np.int64)
    rows = pa.record_batch({"v": [f"{text} {code}" for code in codes]})
    hot = HotRows(codes, np.ones(40, dtype=np.int32), rows, np.array([1000], dtype=np.int64))
    hot_rows_file(path, kind).save([hot], rows.schema, 4, "identity")


def saved_hot_rows(path: Path) -> list[str]:
    """Return the rows that a worker would find."""
    _, _, batches = hot_rows_file(path).load(1 << 20, 60.0)
    return [value for hot in batches if hot.rows is not None for value in hot.rows.column(0).to_pylist()]


@dataclass(frozen=True)
class Command:
    """Something that is done to a sample, and what the newest version holds when it is done."""

    name: str
    run: Callable[[MasterTable], Any]
    becomes: Callable[[Model], Model]
    makes_version: bool = True
    from_nothing: bool = False


def _build(table: MasterTable) -> Any:
    # More rows than the memory holds, and the first ones sorted: data becomes a run of a sort, and runs are spilled.
    rows = rows_of(values(0, "built"))
    start = pa.table({"k": [-2, -1], "v": ["a", "b"]}, schema=SCHEMA)
    batches = [*start.to_batches(), *rows.to_batches(max_chunksize=60)]
    return MasterTable.build(iter(batches), table.path, "k", page_bytes=512, memory=9_000)


def _built(_: Model) -> Model:
    return {-2: "a", -1: "b"} | values(0, "built")


_CHANGES = values(1, "merged", 25)


def _merge(table: MasterTable) -> Any:
    return table.merge(rows_of(_CHANGES), pa.table({"k": [50, 53]}))


_REFRESHED = {-1: "new"} | values(4, "first") | values(2, "refreshed", 40)


def _refresh(table: MasterTable) -> Any:
    return table.refresh(rows_of(_REFRESHED), memory=9_000)


def _recluster(table: MasterTable) -> Any:
    return table.recluster(pa.table({"k": np.arange(0, ROWS, 3), "count": np.arange(ROWS // 3) % 50}), memory=1 << 20)


COMMANDS = {
    command.name: command
    for command in (
        Command("build", _build, _built),
        Command("first build", _build, _built, from_nothing=True),
        Command("merge", _merge, lambda old: {k: v for k, v in (old | _CHANGES).items() if k not in (50, 53)}),
        Command("refresh", _refresh, lambda _: _REFRESHED),
        Command("compact", lambda table: table.compact(), lambda old: old),
        Command("recluster", _recluster, lambda old: old),
        Command("restore", lambda table: table.restore(2), lambda _: values(0, "first") | values(0, "second", 60)),
        Command("vacuum", lambda table: table.vacuum(keep_for=0), lambda old: old, makes_version=False),
        Command("pin", lambda table: pins.pin(LocalFolder(table.path), "new", 0), lambda old: old, makes_version=False),
        Command("hot rows", lambda table: save_hot_rows(table.path, "new"), lambda old: old, makes_version=False),
    )
}


def check_afterwards(command: Command, before: Sample, path: Path, *, is_done: bool) -> str:
    """Raise an error unless the table is whole, old or new, and can be used; return which of both it is."""
    table = MasterTable(path)
    old = max(before.versions, default=0)
    versions = dict(before.versions)
    if command.makes_version:
        versions[old + 1] = command.becomes(versions.get(old, {}))
    try:
        newest = table.version
    except MasterNotFoundError:
        assert command.from_nothing, "the table is gone"
        assert not is_done, "the command has ended well, but there is no table"
        MasterTable.build(rows_of(values(0, "again")), path, "k", page_bytes=512)
        assert content(table) == values(0, "again")
        return "old"
    assert newest in versions, f"the newest version is {newest}"
    assert not is_done or newest == max(versions), "the command has ended well, but its version is not there"
    for version in manifest.versions(LocalFolder(path)):
        table.verify(version)
        assert content(table, version) == versions[version], f"version {version} has other rows"
    assert command.name == "vacuum" or set(before.versions) <= set(manifest.versions(LocalFolder(path))), (
        "an old version is gone"
    )
    assert set(saved_hot_rows(path)) in [set(), {f"saved {n}" for n in range(40)}, {f"new {n}" for n in range(40)}]
    _check_next_commands(table, versions, newest, from_nothing=command.from_nothing)
    return "new" if newest == old + 1 else "old"


def _check_next_commands(table: MasterTable, versions: dict[int, Model], newest: int, *, from_nothing: bool) -> None:
    if not from_nothing:
        assert pins.pin(LocalFolder(table.path), "query", 6) == 2, "the pin is lost"
    assert content(table, pins.pin(LocalFolder(table.path), "new", 0)) == versions[newest]
    more = {1: "more", 10_000: "more"}
    number = table.merge(rows_of(more))
    assert number > newest, "a number was used twice"
    expected = versions[newest] | more
    assert content(table) == expected
    table.vacuum(keep_for=0)
    table.verify()
    assert content(table) == expected
    assert {newest, number} <= set(manifest.versions(LocalFolder(table.path))), "the pinned version is gone"
    leftovers = [name for name in table.path.iterdir() if name.name.startswith("tmp-")]
    assert not leftovers, f"{leftovers} are left"
