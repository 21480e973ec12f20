"""What happens to the files of master tables when disks, processes and people go wrong."""

from __future__ import annotations

import errno
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from semistream.core import durable_files as files
from semistream.core.errors import (
    ConcurrentWriteError,
    CorruptTableError,
    MasterNotFoundError,
    SemistreamError,
)
from semistream.master_table import MasterTable
from semistream.store.paged import PagedFileStore
from semistream.store.paged.versions import manifest, pins
from semistream.store.places.local_folder import LocalFolder
from semistream.store.places.place import WriterTurn


def rows(count: int = 3000, text: str = "row") -> pa.Table:
    order = np.random.default_rng(1).permutation(count)
    return pa.table({"id": order, "text": [f"{text} {number:020d}" for number in order]})


@pytest.fixture
def table(tmp_path: Path) -> MasterTable:
    return MasterTable.build(rows(), tmp_path / "t", "id", page_bytes=2048)


def only(table: MasterTable, pattern: str) -> Path:
    (path,) = table.path.glob(pattern)
    return path


def everything(table: MasterTable) -> list[dict[str, object]]:
    with table.open() as store:
        if not store.page_count:
            return []
        pages = store.read(np.array([0]), np.array([store.page_count - 1]))
        content: list[dict[str, object]] = pages.take(np.arange(store.row_count), ["id", "text"]).to_pylist()
        return content


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)


@pytest.mark.parametrize("direct", [False, True])
def test_a_flipped_byte_is_reported_with_file_and_page(table: MasterTable, direct: bool) -> None:
    data = only(table, "data-*")
    entries = PagedFileStore(table.path).entries
    for page in (0, 17, len(entries) - 1):
        content = data.read_bytes()
        flip(data, int(entries.offsets[page]) + 700)
        try:
            store = table.open(direct=direct)
        except SemistreamError as error:
            pytest.skip(str(error))
        with pytest.raises(CorruptTableError, match=f"Page {page} in .*{data.name}"):
            store.read(np.array([0]), np.array([store.page_count - 1]))
        with pytest.raises(CorruptTableError, match=f"Page {page} in .*{data.name}"):
            table.verify()
        data.write_bytes(content)
    assert table.verify()["rows"] == 3000


def test_every_single_flipped_byte_of_a_page_is_noticed(table: MasterTable) -> None:
    data = only(table, "data-*")
    length = int(PagedFileStore(table.path).entries.lengths[0])
    content = data.read_bytes()
    with table.open() as store:
        for place in range(64, 64 + length, 37):
            flip(data, place)
            with pytest.raises(CorruptTableError, match="Page 0 "):
                store.read(np.array([0]), np.array([0]))
            descriptor = os.open(data, os.O_WRONLY)
            os.pwrite(descriptor, content[place : place + 1], place)
            os.close(descriptor)


@pytest.mark.parametrize("pattern", ["data-*", "index-*", "manifest-*"])
@pytest.mark.parametrize("left", [0, 10, 100, -8, -1])
def test_a_truncated_or_empty_file_is_refused_with_expected_and_actual_sizes(
    table: MasterTable, pattern: str, left: int
) -> None:
    path = only(table, pattern)
    content = path.read_bytes()
    path.write_bytes(content[:left] if left else b"")
    with pytest.raises(CorruptTableError, match=rf"{path.name}.*expected.*found \d+"):
        table.open()
    with pytest.raises(CorruptTableError):
        table.verify()


@pytest.mark.parametrize("pattern", ["data-*", "index-*"])
def test_a_newer_format_is_refused_with_expected_and_actual(table: MasterTable, pattern: str) -> None:
    path = only(table, pattern)
    content = bytearray(path.read_bytes())
    content[8:12] = struct.pack("<I", 3)
    path.write_bytes(content)
    with pytest.raises(CorruptTableError, match=r"format 3, but expected format 2 .*newer semistream"):
        table.open()


def test_a_manifest_of_a_newer_format_is_refused_even_beside_an_older_one(table: MasterTable) -> None:
    text = only(table, "manifest-*").read_text().replace('"format": 1', '"format": 3')
    (table.path / manifest.manifest_name(2)).write_text(text)
    with pytest.raises(CorruptTableError, match=r"format 3, but expected format 2 .*newer semistream"):
        table.open()


class _Trap:
    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch trap-was-sprung",)


@pytest.mark.parametrize("pattern", ["data-*", "index-*", "manifest-*"])
def test_a_pickle_or_random_bytes_in_place_of_a_file_are_refused(
    table: MasterTable, pattern: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    path = only(table, pattern)
    size = path.stat().st_size
    for content in (pickle.dumps(_Trap()), np.random.default_rng(0).bytes(size), bytes(size)):
        for padded in (content, content.ljust(size, b"\0")[:size]):
            path.write_bytes(padded)
            with pytest.raises(CorruptTableError, match=path.name):
                table.open()
    assert not (tmp_path / "trap-was-sprung").exists()


def test_flipped_bytes_in_the_index_or_the_manifest_are_noticed(table: MasterTable) -> None:
    for pattern in ("index-*", "manifest-*"):
        path = only(table, pattern)
        content = path.read_bytes()
        for place in range(100, len(content), 41):
            flip(path, place)
            with pytest.raises(CorruptTableError, match=path.name):
                table.open()
            path.write_bytes(content)


def test_a_missing_file_is_named(table: MasterTable) -> None:
    only(table, "data-*").unlink()
    with pytest.raises(CorruptTableError, match=r"data-.* is missing"):
        table.open()


def test_a_missing_table_says_what_to_do(tmp_path: Path, table: MasterTable) -> None:
    with pytest.raises(MasterNotFoundError, match=r"build one with MasterTable\.build"):
        MasterTable(tmp_path / "absent").open()
    (tmp_path / "empty").mkdir()
    with pytest.raises(MasterNotFoundError, match=r"build one with MasterTable\.build"):
        MasterTable(tmp_path / "empty").info()
    (tmp_path / "file").touch()
    with pytest.raises(MasterNotFoundError, match="is a file"):
        MasterTable(tmp_path / "file").open()
    with pytest.raises(MasterNotFoundError, match="has no version 9: it has 1"):
        table.open(version=9)


def test_a_damaged_newest_manifest_is_never_passed_over(table: MasterTable) -> None:
    before = everything(table)
    table.merge(pa.table({"id": [5000], "text": ["new"]}))
    newest = table.path / manifest.manifest_name(2)
    newest.write_bytes(newest.read_bytes()[:-20])
    names = sorted(path.name for path in table.path.iterdir())
    for work in (
        table.open,
        table.info,
        table.verify,
        table.compact,
        lambda: table.vacuum(keep_for=0),
        lambda: table.merge(rows(10, "on the old version")),
        lambda: table.version,
        lambda: pins.pin(LocalFolder(table.path), "query", 0),
    ):
        with pytest.raises(CorruptTableError, match=rf"{newest.name}.*`semistream master restore \S+ --version 1`"):
            work()
    assert sorted(path.name for path in table.path.iterdir()) == names
    assert table.restore(1) == 3
    assert everything(table) == before
    assert table.merge(rows(10, "after")) == 4
    assert table.vacuum(keep_for=0)["kept"] == [4]
    assert not newest.exists()
    table.verify()


def test_a_table_with_a_damaged_newest_manifest_can_be_built_again(table: MasterTable) -> None:
    only(table, "manifest-*").write_bytes(b"damaged")
    MasterTable.build(rows(20, "again"), table.path, "id")
    assert table.version == 2
    assert len(everything(table)) == 20


def test_temporary_files_are_passed_over_and_removed(table: MasterTable) -> None:
    (table.path / "tmp-1234-manifest-00000003.json").write_bytes(only(table, "manifest-*").read_bytes())
    assert table.version == 1
    table.merge(rows(10, "after"))
    assert not list(table.path.glob("tmp-*"))


@pytest.mark.parametrize("pattern", ["data-*", "index-*", "manifest-*"])
def test_a_symbolic_link_is_not_taken_for_a_file_of_the_table(table: MasterTable, tmp_path: Path, pattern: str) -> None:
    path = only(table, pattern)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CorruptTableError, match="symbolic link"):
        table.open()


def test_a_pipe_in_place_of_a_file_does_not_hang(table: MasterTable) -> None:
    data = only(table, "data-*")
    data.unlink()
    os.mkfifo(data)
    with pytest.raises(CorruptTableError, match="not a regular file"):
        table.open()


@pytest.mark.parametrize(
    "name", ["../data-00000001-aaaaaaaa.pages", "/etc/passwd", "data-00000001-aaaaaaaa.pages/x", ""]
)
def test_a_manifest_that_names_a_file_outside_the_table_is_refused(table: MasterTable, name: str) -> None:
    known = manifest.load(LocalFolder(table.path), 1)
    hostile = manifest.TableFile(name, known.files[0].size_bytes)
    path = only(table, "manifest-*")
    path.write_bytes(replace(known, files=(hostile,)).encode())
    with pytest.raises(CorruptTableError, match="which is not a data file of a master table"):
        table.open()


def _change(table: MasterTable, work: str) -> None:
    if work == "build":
        MasterTable.build(rows(9000, "new"), table.path, "id", memory="150KB")
    else:
        table.merge(rows(9000, "new"), rows(4000), memory="150KB")


@pytest.mark.parametrize("work", ["build", "merge"])
@pytest.mark.parametrize("allowed_writes", range(6))
def test_a_full_disk_leaves_the_old_version_current_and_no_leftovers(
    table: MasterTable, monkeypatch: pytest.MonkeyPatch, work: str, allowed_writes: int
) -> None:
    before, names = everything(table), sorted(path.name for path in table.path.iterdir())
    write_all = files.write_all
    written = 0

    def full(descriptor: int, data: bytes) -> None:
        nonlocal written
        written += 1
        if written > allowed_writes:
            write_all(descriptor, memoryview(data)[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        write_all(descriptor, data)

    monkeypatch.setattr(files, "write_all", full)
    with pytest.raises(SemistreamError, match="is full: free some space"):
        _change(table, work)
    monkeypatch.undo()
    assert sorted(path.name for path in table.path.iterdir()) == names
    assert everything(table) == before
    assert table.merge(rows(10, "after")) == 2


def test_leftovers_of_a_killed_build_are_removed_by_the_next(table: MasterTable) -> None:
    script = """
import os, sys
import pyarrow as pa
from semistream.store.paged import build
from semistream.store.paged.versions import new_version
def die(*_):
    os.kill(os.getpid(), 9)
new_version.write_index = die
build(pa.table({"id": list(range(5000, 0, -1)), "text": ["x"] * 5000}), sys.argv[1], "id", memory="20KB")
"""
    names = {path.name for path in table.path.iterdir()}
    before = everything(table)
    assert subprocess.run([sys.executable, "-c", script, str(table.path)], check=False).returncode == -9
    left = {path.name for path in table.path.iterdir()} - names
    assert left
    assert everything(table) == before
    table.merge(rows(10, "after"))
    assert not left & {path.name for path in table.path.iterdir()}
    assert table.verify()["version"] == 2


def test_of_two_builders_at_once_one_wins_and_nothing_is_lost(table: MasterTable) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slowly() -> pa.RecordBatchReader:
        def batches() -> object:
            yield from rows(100, "first").to_batches()
            started.set()
            assert go_on.wait(10)

        return pa.RecordBatchReader.from_batches(rows(1).schema, batches())

    first = threading.Thread(target=lambda: MasterTable.build(slowly(), table.path, "id"))
    first.start()
    assert started.wait(10)
    for work in (
        lambda: MasterTable.build(rows(50, "second"), table.path, "id"),
        lambda: table.merge(rows(50, "second")),
        lambda: table.vacuum(),
    ):
        with pytest.raises(ConcurrentWriteError, match="Another writer is writing to"):
            work()
    go_on.set()
    first.join()
    assert table.version == 2
    assert len(everything(table)) == 100
    table.verify(version=1)


def test_a_version_that_another_writer_committed_is_never_overwritten(
    table: MasterTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = manifest.commit

    def theirs(described: manifest.Manifest) -> bytes:
        return replace(described, index=replace(described.index, name="index-00000002-aaaaaaaa.pages")).encode()

    def too_late(place: LocalFolder, described: manifest.Manifest, turn: WriterTurn) -> None:
        # As on a file system that keeps no locks between machines.
        (place.folder / manifest.manifest_name(described.version)).write_bytes(theirs(described))
        committed(place, described, turn)

    monkeypatch.setattr(manifest, "commit", too_late)
    with pytest.raises(ConcurrentWriteError, match=r"committed version 2 .* first"):
        table.merge(rows(10, "late"))
    assert manifest.load(LocalFolder(table.path), 2).index.name == "index-00000002-aaaaaaaa.pages"
    assert len(list(table.path.glob("data-*"))) == 1


def test_a_file_system_without_direct_reads_is_named(table: MasterTable, monkeypatch: pytest.MonkeyPatch) -> None:
    system_open = os.open

    def refusing(path: str, flags: int, *mode: int) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return system_open(path, flags, *mode)

    monkeypatch.setattr(os, "open", refusing)
    with pytest.raises(SemistreamError, match="refuses direct reads: open the table without `direct`"):
        table.open(direct=True)


def test_a_failed_open_leaves_no_descriptors(table: MasterTable) -> None:
    only(table, "index-*").write_bytes(b"")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with pytest.raises(CorruptTableError):
            table.open()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
