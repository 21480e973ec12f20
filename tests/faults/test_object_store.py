"""Tables in an object store: racing writers, kills, lost answers, stores that are away, and secrets."""

from __future__ import annotations

import logging
import os
import pickle
import random
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from s3_writer import rows_of_commit

import semistream as ss
from semistream.core.errors import InvalidSettingError, MissingExtraError, SemistreamError, StoreUnavailableError
from semistream.master_table import MasterTable
from semistream.store.paged.format.layout import manifest_name
from semistream.store.paged.versions import pins, vacuum
from semistream.store.places import object_client, object_store
from semistream.store.places.choice import place_of
from semistream.store.tables import table_at
from servers.proxy import Proxy
from servers.s3 import SECRET, S3Server

CHILD = Path(__file__).with_name("s3_writer.py")
START = pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.string()), "n": pa.array([], pa.int64())})


@pytest.fixture
def table(s3: S3Server) -> MasterTable:
    return MasterTable.build(START, s3.address(), "id")


def start(table: MasterTable, what: str, writer: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(CHILD), str(table.address), what, str(writer), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def content(table: MasterTable, version: int | None = None) -> dict[int, str]:
    with table.open(version) as store:
        if not store.page_count:
            return {}
        pages = store.read(np.array([0]), np.array([store.page_count - 1]))
        rows = pages.take(np.arange(len(pages.codes)), ["id", "v"]).to_pylist()
    return {row["id"]: row["v"] for row in rows}


def race(table: MasterTable, commits: int) -> None:
    writers = [start(table, "merge", writer, commits) for writer in (1, 2)]
    said = [writer.communicate(timeout=540) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0], said
    given = sorted(int(line) for output, _ in said for line in output.split())
    assert given == list(range(2, 2 + 2 * commits)), "each commit has a number of its own"
    assert table.info()["versions"] == list(range(1, 2 + 2 * commits)), "and all are there"
    assert table.version == 1 + 2 * commits
    assert set(content(table).values()) == {f"1/{commits}", f"2/{commits}"}
    seen: dict[int, int] = {1: 0, 2: 0}
    for version in range(2, 2 + 2 * commits):
        now = {1: 0, 2: 0} | {int(v[0]): int(v[2:]) for v in content(table, version).values()}
        assert sum(now.values()) == sum(seen.values()) + 1, "a version has its predecessor's rows and one commit more"
        seen = now
    table.verify()


def test_the_newest_version_and_the_next_number_are_asked_for_at_once(
    table: MasterTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=10)
    original = object_store.ObjectStore.status

    def status(place: object_store.ObjectStore, name: str) -> object:
        both.wait()
        return original(place, name)

    monkeypatch.setattr(object_store.ObjectStore, "status", status)
    assert table.version == 1


def test_two_writers_lose_no_commit(table: MasterTable) -> None:
    race(table, 20)


@pytest.mark.slow
def test_two_writers_lose_none_of_four_hundred_commits(table: MasterTable) -> None:
    race(table, 200)


def kill_while(table: MasterTable, what: str, seconds: float, writer: int) -> None:
    child = start(table, what, writer, 10_000)
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(seconds)
    child.kill()
    child.communicate()


def check_whole(table: MasterTable) -> None:
    version = table.version
    table.verify()
    now = content(table)
    by_writer: dict[int, set[str]] = {}
    for key, value in now.items():
        by_writer.setdefault(key // 1000, set()).add(value)
    assert all(len(values) == 1 for values in by_writer.values()), "a commit is there as a whole"
    assert table.merge(rows_of_commit(9, version)) == version + 1
    assert set(content(table)) >= set(now)


@pytest.mark.parametrize("kills", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_a_writer_killed_at_any_moment_leaves_the_old_or_the_new_version(table: MasterTable, kills: int) -> None:
    chance = random.Random(kills)
    for trial in range(kills):
        kill_while(table, "merge", chance.uniform(0, 0.12), 1 + trial % 3)
        check_whole(table)
    later = time.time() + 2 * 86_400
    freed = vacuum.vacuum(place_of(table.address), keep_for=0, now=later)
    assert freed["kept"] == [table.version]
    place = place_of(table.address)
    left = [name for name in place.names() if name.startswith(("data-", "index-", "tmp-"))]
    assert set(left) == {file["name"] for file in table.info()["files"]}, "leftovers are gone"
    table.verify()


@pytest.mark.parametrize("kills", [2, pytest.param(40, marks=pytest.mark.slow)])
def test_a_query_killed_while_it_pins_leaves_whole_pins(table: MasterTable, kills: int) -> None:
    chance = random.Random(kills)
    for _ in range(kills):
        kill_while(table, "pin", chance.uniform(0, 0.1), 0)
        for batch in range(30):
            assert table_at(table.address).pin("query", batch) == 1


def test_leftovers_that_a_writer_may_need_outlive_a_vacuum(table: MasterTable) -> None:
    place = place_of(table.address)
    for name in ("data-00000002-0123abcd.pages", "tmp-0123abcd-upserts-1"):
        place.put_new(name, b"of a writer that is at work")
    assert table.vacuum(keep_for=0)["files"] == []
    old = vacuum.vacuum(place, keep_for=0, now=time.time() + 90_000)
    assert old["files"] == ["data-00000002-0123abcd.pages", "tmp-0123abcd-upserts-1"]


def test_a_vacuum_keeps_what_was_current_a_moment_ago_and_what_is_pinned(table: MasterTable) -> None:
    for commit in range(3):
        table.merge(rows_of_commit(1, commit))
    table_at(table.address).pin("query", 0, 2)
    assert table.vacuum()["kept"] == [1, 2, 3, 4]
    freed = table.vacuum(keep_for=0)
    assert (freed["versions"], freed["kept"]) == ([1, 3], [2, 4])
    assert content(table, 2) == {1000 + key: "1/0" for key in range(10)}
    assert table.merge(rows_of_commit(1, 9)) == 5, "numbers go on"


def test_a_version_that_is_being_removed_is_not_pinned(table: MasterTable) -> None:
    table.merge(rows_of_commit(1, 1))
    place = place_of(table.address)
    removing = place.taken_alone(manifest_name(1))
    assert removing is not None
    place.remove(manifest_name(1))
    with pytest.raises(SemistreamError, match=r"Version 1 .* is gone"):
        pins.pin(place, "query", 0, 1)
    assert pins.pin(place, "query", 0) == 2
    removing.release()


def test_a_hint_that_is_wrong_does_not_lead_to_a_wrong_version(table: MasterTable) -> None:
    for commit in range(3):
        table.merge(rows_of_commit(1, commit))
    place = place_of(table.address)
    for hint in (b"1", b"9", b"what?", b"-1", b"3"):
        place.replace("newest", lambda rows, hint=hint: rows.write(hint) and None)  # type: ignore[misc]
        object_store._newest_seen.clear()
        assert table.version == 4, hint


def test_an_answer_that_was_lost_is_settled_by_reading_back(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    table = MasterTable.build(START, s3.address(), "id")
    lost: list[str] = []

    def lose(method: str, path: str) -> bool:
        is_first = method == "PUT" and ("manifest" in path or "pins" in path) and path not in lost
        if is_first:
            lost.append(path)
        return is_first

    with Proxy(s3.port, lose_answer=lose) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
        object_client._opened.cache_clear()
        assert [table.merge(rows_of_commit(1, commit)) for commit in range(3)] == [2, 3, 4]
        assert table_at(table.address).pin("query", 0) == 4
    object_client._opened.cache_clear()
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.settings["AWS_ENDPOINT_URL"])
    assert len(lost) == 4
    assert table.info()["versions"] == [1, 2, 3, 4]
    table.verify()


def test_a_table_behind_a_slow_line_is_joined_and_its_requests_are_few(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"id": list(range(40_000)), "v": [f"row {number}" for number in range(40_000)]})
    table = MasterTable.build(rows, s3.address(), "id")
    with Proxy(s3.port, latency_seconds=0.005, bytes_per_second=50e6) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
        object_client._opened.cache_clear()
        stream = pa.table({"id": list(range(0, 40_000, 97))})
        joined = ss.join(stream, table, on="id", memory="16MB").read_all()
        assert sorted(joined["v"].to_pylist()) == sorted(f"row {number}" for number in range(0, 40_000, 97))
        assert len(proxy.requests) < 100, "near pages come together"
    object_client._opened.cache_clear()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_client, "_MAX_RETRIES", 0)
    object_client._opened.cache_clear()
    yield
    object_client._opened.cache_clear()


@pytest.mark.usefixtures("impatient")
def test_a_store_that_is_away_is_one_sentence_and_never_a_miss(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    table = MasterTable.build(rows_of_commit(1, 1), s3.address(), "id")
    store = table.open()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    object_client._opened.cache_clear()
    for ask in (
        lambda: ss.join(pa.table({"id": [1000]}), table, on="id", how="left").read_all(),
        lambda: ss.join(pa.table({"id": [1000]}), store, on="id", how="left").read_all(),
        lambda: table.merge(rows_of_commit(1, 2)),
        lambda: table_at(table.address).pin("query", 0),
    ):
        with pytest.raises(StoreUnavailableError, match=r"did not answer for s3://.*\(no connection") as away:
            ask()
        _check_no_secret(away)


def test_a_bucket_that_is_not_there_and_a_table_that_is_not_are_told_apart(s3: S3Server) -> None:
    with pytest.raises(SemistreamError, match="There is no bucket nowhere"):
        _ = MasterTable("s3://nowhere/table").version
    with pytest.raises(SemistreamError, match="There is no master table at s3://lake/none"):
        _ = MasterTable("s3://lake/none").version
    assert s3.bucket == "lake"


@pytest.mark.parametrize("address", ["s3://", "s3:///table", "s3://lake/t?version=1", "gs://me@lake/t"])
def test_an_address_that_is_not_a_bucket_and_a_folder_is_refused(address: str) -> None:
    with pytest.raises(InvalidSettingError, match=r"BUCKET/FOLDER|not the address"):
        MasterTable(address)


def test_a_folder_with_other_objects_is_not_taken_for_a_table(s3: S3Server) -> None:
    address = s3.address()
    place_of(address).put_new("holiday.jpg", b"-")
    with pytest.raises(InvalidSettingError, match=r"other objects such as 'holiday.jpg'"):
        MasterTable.build(START, address, "id")


def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semistream.core.extras.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'semistream\[object-store\]'"):
        MasterTable("s3://lake/table")


def test_no_secret_shows_in_what_is_printed_logged_or_sent(
    table: MasterTable, caplog: pytest.LogCaptureFixture
) -> None:
    assert os.environ["AWS_SECRET_ACCESS_KEY"] == SECRET
    with caplog.at_level(logging.DEBUG), table.open() as store:
        shown = repr((table, table.address, store, store.__dict__, table_at(table.address).__dict__, table.info()))
    assert SECRET not in shown + caplog.text
    assert SECRET.encode() not in pickle.dumps((table, table.address))
    with pytest.raises(TypeError, match="send the address"):
        pickle.dumps(place_of(table.address))


def _check_no_secret(raised: pytest.ExceptionInfo[BaseException]) -> None:
    whole = "".join(traceback.format_exception(raised.value))
    assert SECRET not in whole
    assert "Authorization" not in whole
