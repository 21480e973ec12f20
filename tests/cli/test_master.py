"""The commands of master tables."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from command_line import fail, flat_objects, succeed

from semistream import MasterTable, join
from semistream.store.paged.versions import pins
from semistream.store.places.local_folder import LocalFolder

ROWS = pa.table({"id": pa.array(range(1000)), "name": [f"product {number}" for number in range(1000)]})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return the path of a table of 1,000 products."""
    MasterTable.build(ROWS, tmp_path / "products", "id")
    return tmp_path / "products"


def _written(path: Path, rows: pa.Table = ROWS) -> Path:
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(rows, path)
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(rows, path)
    else:
        pyarrow.feather.write_feather(rows, path)
    return path


def _names(table: Path, *ids: int) -> list[str | None]:
    asked = pa.table({"id": pa.array(ids, pa.int64())})
    rows = join(asked, MasterTable(table), on="id", how="left", memory="8MB").read_all()
    by_id = dict(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True))
    return [by_id[number] for number in ids]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_build_reads_every_kind_of_file(tmp_path: Path, suffix: str) -> None:
    source, to = _written(tmp_path / f"rows.{suffix}"), tmp_path / "products"
    shown = succeed("master", "build", source, "--to", to, "--key", "id")
    assert shown.startswith(f"Built version 1 of {to}: 1,000 rows in ")
    assert _names(to, 7, 2000) == ["product 7", None]


def test_build_reads_files_and_directories_together(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    (folder / "deeper").mkdir(parents=True)
    (folder / "_SUCCESS").touch()
    _written(folder / "a.parquet", ROWS.slice(0, 300))
    _written(folder / "deeper" / "b.parquet", ROWS.slice(300, 300))
    last = _written(tmp_path / "c.parquet", ROWS.slice(600))
    assert "1,000 rows" in succeed("master", "build", folder, last, "--to", tmp_path / "t", "--key", "id")


def test_build_takes_a_key_of_several_columns(tmp_path: Path) -> None:
    source = _written(tmp_path / "rows.parquet")
    succeed("master", "build", source, "--to", tmp_path / "t", "--key", "name, id", "--page-bytes", "1024")
    about = MasterTable(tmp_path / "t").info()
    assert about["key"] == ["name", "id"]
    assert about["page_bytes"] == 1024


@pytest.mark.parametrize(("rule", "rows"), [("all", "2,000 rows"), ("latest", "1,000 rows")])
def test_build_keeps_duplicates_as_told(tmp_path: Path, rule: str, rows: str) -> None:
    source = _written(tmp_path / "rows.parquet", pa.concat_tables([ROWS, ROWS]))
    arguments = ("master", "build", source, "--to", tmp_path / "t", "--key", "id")
    assert "id" in fail(*arguments)
    assert rows in succeed(*arguments, "--on-duplicate", rule)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_merge_deletes_inserts_and_replaces(tmp_path: Path, table: Path, suffix: str) -> None:
    upserts = _written(tmp_path / f"new.{suffix}", pa.table({"id": [1, 5000], "name": ["one", "new"]}))
    deletes = _written(tmp_path / f"gone.{suffix}", pa.table({"id": [2]}))
    shown = succeed("master", "merge", table, "--upserts", upserts, "--deletes", deletes)
    assert shown.startswith(f"Merged into version 2 of {table}: 1,000 rows in ")
    assert "version 1 stays readable" in shown
    assert _names(table, 1, 2, 3, 5000) == ["one", None, "product 3", "new"]


def test_merge_reads_the_text_of_csv_files_as_the_types_of_the_table(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int16()), ("name", pa.string())])
    MasterTable.build(ROWS.cast(schema), tmp_path / "t", "id")
    upserts = _written(tmp_path / "new.csv", pa.table({"id": [1], "name": ["007"]}))
    deletes = _written(tmp_path / "gone.csv", pa.table({"id": [2]}))
    succeed("master", "merge", tmp_path / "t", "--upserts", upserts, "--deletes", deletes)
    assert _names(tmp_path / "t", 1, 2) == ["007", None]


def test_a_merge_that_changes_nothing_says_so(tmp_path: Path, table: Path) -> None:
    deletes = _written(tmp_path / "gone.parquet", pa.table({"id": [9999]}))
    assert succeed("master", "merge", table, "--deletes", deletes).startswith("Nothing has changed")


def test_info_shows_columns_and_versions(table: Path) -> None:
    shown = succeed("master", "info", table)
    assert "1,000" in shown
    assert all(text in shown for text in ("id", "int64", "name", "string", "unique"))


def test_info_as_json_is_a_list_with_one_flat_object(table: Path) -> None:
    (row,) = flat_objects(succeed("master", "info", table, "--json"))
    assert row["rows"] == 1000
    assert row["key"] == "id"
    assert row["columns"] == "id int64, name string"
    assert row["version"] == 1


def test_verify_finds_a_sound_table_sound(table: Path) -> None:
    assert "is sound" in succeed("master", "verify", table)


def test_verify_names_the_damaged_page(table: Path) -> None:
    data = next(table.glob("data-*"))
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(content)
    assert data.name in fail("master", "verify", table)


def test_vacuum_keeps_as_many_versions_as_told(tmp_path: Path, table: Path) -> None:
    for number in range(3):
        upserts = _written(tmp_path / "new.parquet", pa.table({"id": [number], "name": ["new"]}))
        succeed("master", "merge", table, "--upserts", upserts)
    shown = succeed("master", "vacuum", table, "--keep", "2", "--keep-for", "0")
    assert shown.startswith("Removed 2 old versions and ")
    assert shown.endswith("Kept version 3: one of the newest 2.\nKept version 4: the newest.\n")
    assert MasterTable(table).info()["versions"] == [3, 4]


def test_vacuum_says_why_each_version_stays_and_lets_old_pins_go(tmp_path: Path, table: Path) -> None:
    pins.pin(LocalFolder(table), "long-gone", 7)
    pin = table / "pins" / "long-gone" / "7.json"
    os.utime(pin, (0, time.time() - 8 * 86_400))
    upserts = _written(tmp_path / "new.parquet", pa.table({"id": [1], "name": ["new"]}))
    succeed("master", "merge", table, "--upserts", upserts)
    assert "long-gone" in succeed("master", "info", table)
    (row,) = flat_objects(succeed("master", "info", table, "--json"))
    assert str(row["pins"]).startswith("long-gone batch 7 version 1 age 6912")
    shown = succeed("master", "vacuum", table)
    why = r"Kept version 1: current until \d+ seconds? ago; pinned by query long-gone, batch 7, 1 week ago\."
    assert re.search(why, shown)
    shown = succeed("master", "vacuum", table, "--keep-for", "0", "--pins-older-than", "9 days")
    assert "Kept version 1: pinned by query long-gone, batch 7, 1 week ago." in shown
    shown = succeed("master", "vacuum", table, "--keep-for", "0", "--pins-older-than", "7 days")
    assert "Removed 1 old version" in shown
    assert "Removed the pins of query long-gone." in shown
    assert not pin.exists()
    assert "is not a duration" in fail("master", "vacuum", table, "--keep-for", "soon")


def test_compact_makes_one_file_of_many(tmp_path: Path, table: Path) -> None:
    assert succeed("master", "compact", table).startswith("Nothing to do: version 1")
    for number in range(3):
        upserts = _written(tmp_path / "new.parquet", pa.table({"id": [300 * number], "name": ["new"]}))
        succeed("master", "merge", table, "--upserts", upserts)
    assert succeed("master", "compact", table).startswith("Compacted 4 files into one as version 5")
    assert len(MasterTable(table).info()["files"]) == 2
    assert _names(table, 300) == ["new"]


def test_recluster_puts_hot_rows_first_and_tells_what_the_index_takes(tmp_path: Path, table: Path) -> None:
    hot = _written(tmp_path / "hot.csv", pa.table({"id": [999, 7], "count": [5, 6]}))
    shown = succeed("master", "recluster", table, "--counts", hot)
    assert shown.startswith(f"Version 2 of {table} has its 1,000 rows in the order of their use (counts of keys):")
    assert "2 hot keys on the first 1 of " in shown
    assert "The index takes " in shown
    (row,) = flat_objects(succeed("master", "recluster", table, "--by", "id", "--json"))
    assert (row["version"], row["by"], row["hot_keys"], row["classes"]) == (3, "column id", 500, 2)
    assert row["index_bytes"] > row["index_bytes_before"] > 0
    assert "by use (column id): 500 hot keys" in succeed("master", "info", table)
    assert flat_objects(succeed("master", "info", table, "--json"))[0]["by_use"] == "column id"
    assert _names(table, 3, 998, 2000) == ["product 3", "product 998", None]


def test_recluster_says_what_is_missing(tmp_path: Path, table: Path) -> None:
    assert "No query has saved how the rows of" in fail("master", "recluster", table)
    assert "has no column 'sold'" in fail("master", "recluster", table, "--by", "sold")
    assert "name one of numbers" in fail("master", "recluster", table, "--by", "name")
    keys = _written(tmp_path / "keys.csv", pa.table({"id": [1]}))
    assert "a column 'count'" in fail("master", "recluster", table, "--counts", keys)
    assert "not both" in fail("master", "recluster", table, "--counts", keys, "--by", "id")


def test_restore_goes_back_under_a_new_number(tmp_path: Path, table: Path) -> None:
    before = _names(table, 1)
    upserts = _written(tmp_path / "new.parquet", pa.table({"id": [1], "name": ["new"]}))
    succeed("master", "merge", table, "--upserts", upserts)
    (table / "manifest-00000002.json").write_bytes(b"damaged")
    assert f"`semistream master restore {table} --version 1`" in fail("master", "info", table)
    assert succeed("master", "restore", table, "--version", "1").startswith("Version 3 of ")
    assert _names(table, 1) == before
    assert succeed("master", "restore", table, "--version", "3").startswith("Nothing to do")
    assert "has no version 9" in fail("master", "restore", table, "--version", "9")


@pytest.mark.parametrize("command", ["info", "verify", "vacuum"])
def test_a_missing_table_is_one_sentence_that_says_how_to_build_it(tmp_path: Path, command: str) -> None:
    path = tmp_path / "nowhere"
    said = fail("master", command, path)
    assert said == f"There is no master table at {path}: build one with `semistream master build`."


def test_an_address_with_a_password_is_not_repeated() -> None:
    said = fail("master", "info", "postgresql://me:secret@host/db")
    assert "secret" not in said


def test_errors_of_build_are_one_sentence(tmp_path: Path) -> None:
    to = ("--to", tmp_path / "t")
    assert "There is no file" in fail("master", "build", tmp_path / "no.parquet", *to, "--key", "id")
    (tmp_path / "bad.parquet").write_text("no parquet\nat all")
    assert "cannot be read as parquet" in fail("master", "build", tmp_path / "bad.parquet", *to, "--key", "id")
    (tmp_path / "rows.xls").touch()
    assert "is not of a known kind" in fail("master", "build", tmp_path / "rows.xls", *to, "--key", "id")
    (tmp_path / "empty").mkdir()
    assert "has no Parquet, CSV or Arrow files" in fail("master", "build", tmp_path / "empty", *to, "--key", "id")
    source, other = _written(tmp_path / "rows.parquet"), _written(tmp_path / "rows.csv")
    assert "of several kinds (.csv, .parquet)" in fail("master", "build", source, other, *to, "--key", "id")
    assert "'price'" in fail("master", "build", source, *to, "--key", "price")
    assert "No key column is named" in fail("master", "build", source, *to, "--key", ",")
    assert "is not a memory size" in fail("master", "build", source, *to, "--key", "id", "--memory", "much")
    assert "page_bytes is 3" in fail("master", "build", source, *to, "--key", "id", "--page-bytes", "3")
    assert "give --to PATH" in fail("master", "build", source, "--key", "id")
    nulls = _written(tmp_path / "nulls.parquet", pa.table({"id": pa.array([1, None, None], pa.int64())}))
    assert fail("master", "build", nulls, *to, "--key", "id").startswith("2 master rows have a null key")
    assert "has other files" in fail("master", "build", source, "--to", tmp_path, "--key", "id")


def test_errors_of_merge_are_one_sentence(tmp_path: Path, table: Path) -> None:
    assert fail("master", "merge", table).startswith("There is nothing to merge: give --upserts FILE or --deletes FILE")
    assert "There is no file" in fail("master", "merge", table, "--upserts", tmp_path / "no.parquet")
    narrow = _written(tmp_path / "narrow.csv", pa.table({"id": [1]}))
    assert "The column 'name' (string) is missing" in fail("master", "merge", table, "--upserts", narrow)
    words = tmp_path / "words.csv"
    words.write_text("id,name\none,chair\n")
    assert "one" in fail("master", "merge", table, "--upserts", words)
    assert MasterTable(table).version == 1


def test_keep_must_be_positive(table: Path) -> None:
    assert "Invalid value for '--keep'" in fail("master", "vacuum", table, "--keep", "0", code=2)


def test_info_shows_a_damaged_pin_and_what_to_do_about_it(table: Path) -> None:
    pin = table / "pins" / "sales" / "7.json"
    pin.parent.mkdir(parents=True)
    pin.write_text("{")
    assert f"The pin {pin} is damaged, and vacuum refuses to work: restore the file, or remove it" in succeed(
        "master", "info", table
    )
    assert flat_objects(succeed("master", "info", table, "--json"))[0]["damaged_pins"] == str(pin)
    assert f"The pin {pin} is damaged: restore it, or remove it" in fail("master", "vacuum", table)
