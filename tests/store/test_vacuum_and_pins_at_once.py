"""A pin, a merge and a vacuum at the same time, in every order: a pin never names a version that is gone."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from table_model import all_rows

from semistream.core.errors import ConcurrentWriteError, SemistreamError
from semistream.core.file_system import System, installed
from semistream.master_table import MasterTable
from semistream.store.paged.versions import manifest, pins
from semistream.store.places import local_locks
from semistream.store.places.local_folder import LocalFolder


class Meanwhile(System):
    """Does something else before one of the calls; other processes would do it there."""

    def __init__(self, at: int, work: Callable[[], object]) -> None:
        self.count = 0
        self._at = at
        self._work = work

    def __getattribute__(self, name: str) -> Any:
        attribute = super().__getattribute__(name)
        if name.startswith("_") or name == "count":
            return attribute
        self.count += 1
        if self.count == self._at:
            with installed(System()):
                self._work()
        return attribute


def rows(value: int) -> pa.Table:
    return pa.table({"k": [1, 2, 3], "v": [value] * 3})


@pytest.fixture
def original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MasterTable:
    monkeypatch.setattr(local_locks, "_PATIENCE_SECONDS", 0.05)
    table = MasterTable.build(rows(1), tmp_path / "original", "k")
    table.merge(rows(2))
    return table


def each_step(
    original: MasterTable,
    work: Callable[[MasterTable], object],
    check: Callable[[MasterTable], object],
    system: type[Meanwhile] = Meanwhile,
) -> int:
    """Run `check` with a table in which `work` is done before its first call, before its second, and so on."""
    step = 0
    while True:
        step += 1
        table = MasterTable(shutil.copytree(original.path, original.path.with_name("copy")))
        meanwhile = system(step, lambda table=table: work(table))
        with installed(meanwhile):
            check(table)
        shutil.rmtree(table.path)
        if meanwhile.count < step:
            return step - 1


def check_pins(table: MasterTable) -> None:
    """Every pin that a replay may need names a version that is there in whole."""
    for pinned in pins.pins_of(LocalFolder(table.path)):
        table.verify(pinned.version)
        assert pins.pin(LocalFolder(table.path), pinned.owner, pinned.batch) == pinned.version


def merge_and_vacuum(table: MasterTable) -> None:
    table.merge(rows(3))
    table.vacuum(keep_for=0)


@pytest.mark.parametrize("version", [None, 1, 2])
def test_a_vacuum_at_any_step_of_a_pin_leaves_no_pin_of_a_removed_version(
    original: MasterTable, version: int | None
) -> None:
    def pin(table: MasterTable) -> None:
        try:
            pinned = pins.pin(LocalFolder(table.path), "query", 0, version)
        except SemistreamError as error:
            if version is None or "is gone" not in str(error):
                raise
        else:
            table.verify(pinned)
        with installed(System()):
            table.vacuum(keep_for=0)
            check_pins(table)

    assert each_step(original, merge_and_vacuum, pin) > 10


@pytest.mark.parametrize("version", [None, 1, 2])
def test_a_pin_at_any_step_of_a_vacuum_keeps_its_version(original: MasterTable, version: int | None) -> None:
    def pin(table: MasterTable) -> None:
        with suppress(SemistreamError):
            pinned = pins.pin(LocalFolder(table.path), "query", 0, version)
            assert version in (None, pinned)

    def vacuum(table: MasterTable) -> None:
        table.vacuum(keep_for=0)
        with installed(System()):
            check_pins(table)
            table.merge(rows(4))
            table.vacuum(keep_for=0)
            check_pins(table)

    assert each_step(original, pin, vacuum) > 20


class WithoutLeases(Meanwhile):
    """A system whose files cannot be locked, but for the one of the writers."""

    def lock(self, descriptor: int, kind: int) -> None:
        if "manifest" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        super().lock(descriptor, kind)


def test_where_nothing_can_be_locked_the_time_that_versions_are_kept_protects_a_pin(original: MasterTable) -> None:
    def merge_and_vacuum_soon(table: MasterTable) -> None:
        table.merge(rows(3))
        with installed(WithoutLeases(-1, rows)):
            table.vacuum(keep_for=60)

    def pin(table: MasterTable) -> None:
        table.verify(pins.pin(LocalFolder(table.path), "query", 0))
        check_pins(table)

    assert each_step(original, merge_and_vacuum_soon, pin, WithoutLeases) > 10


def test_a_reader_that_opens_at_any_step_of_a_vacuum_reads_its_version_or_is_told_that_it_is_gone(
    original: MasterTable,
) -> None:
    def look(table: MasterTable) -> None:
        for version in (1, 2, None):
            try:
                with table.open(version) as store:
                    assert len(all_rows(store)) == 3
            except SemistreamError as error:
                if version != 1 or not any(text in str(error) for text in ("has no version 1", "A vacuum holds")):
                    raise

    assert each_step(original, look, lambda table: table.vacuum(keep_for=0)) > 20


def test_a_vacuum_at_any_step_of_opening_leaves_a_reader_with_a_whole_version(original: MasterTable) -> None:
    def look(table: MasterTable) -> None:
        with table.open() as store:
            assert store.version in (2, 3)
            with installed(System()):
                with suppress(ConcurrentWriteError):
                    table.vacuum(keep_for=0)
                assert store.version in manifest.versions(LocalFolder(table.path))

    assert each_step(original, merge_and_vacuum, look) > 10
