"""The command that predicts hit rates from a sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command_line import fail, flat_objects, succeed
from pyarrow import csv, parquet

from semistream.generator import ZipfKeys
from semistream.store import tables


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    numbers = np.arange(1, 20_001, dtype=np.int64)
    tables.build(pa.table({"id": numbers, "price": numbers * 1.5}), tmp_path / "products", "id")
    drawn = ZipfKeys(20_000, 1.0, seed=1, ranks="shuffled").draw(5_000)
    parquet.write_table(pa.table({"id": drawn, "product": drawn}), tmp_path / "sample.parquet")
    csv.write_csv(pa.table({"id": drawn}), tmp_path / "sample.csv")
    return tmp_path


def test_every_amount_of_memory_has_a_line(folder: Path) -> None:
    shown = succeed(
        "advise", "--master", folder / "products", "--sample", folder / "sample.parquet", "--memory", "1MB,4MB"
    )
    assert "predicted from 5,000 rows" in shown
    lines = [line.split() for line in shown.splitlines() if "%" in line]
    assert [line[:2] for line in lines] == [["1.0", "MB"], ["4.0", "MB"]]


@pytest.mark.parametrize("arguments", [("--sample", "sample.csv"), ("--sample", "sample.parquet", "--on", "product")])
def test_json_is_a_list_of_flat_objects(folder: Path, arguments: tuple[str, ...]) -> None:
    places = [folder / argument if "sample." in argument else argument for argument in arguments]
    rows = flat_objects(succeed("advise", "--master", folder / "products", *places, "--memory", "1MB", "--json"))
    assert [row["memory_bytes"] for row in rows] == [1_000_000]
    assert 0.3 < rows[0]["first_hit_rate"] <= rows[0]["hit_rate"] < 1.0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--sample", "missing.parquet"), "There is no file"),
        (("--sample", "sample.parquet", "--on", "other"), "has no column other: its columns are id, product"),
        (("--sample", "sample.parquet", "--on", "id,product"), "The master table's key has 1 columns"),
        (("--sample", "sample.parquet", "--memory", "much"), "much"),
    ],
)
def test_a_mistake_is_one_sentence(folder: Path, arguments: tuple[str, ...], says: str) -> None:
    places = [folder / argument if "." in argument else argument for argument in arguments]
    assert says in fail("advise", "--master", folder / "products", *places)


@pytest.mark.parametrize("name", ["words.parquet", "words.csv"])
def test_keys_may_be_texts(folder: Path, name: str) -> None:
    words = [f"p{number:05}" for number in range(2_000)]
    tables.build(pa.table({"sku": words, "price": range(2_000)}), folder / "words", "sku")
    sample = pa.table({"sku": [words[rank % 2_000] for rank in ZipfKeys(2_000, 1.0, seed=2).draw(3_000)]})
    (csv.write_csv if name.endswith("csv") else parquet.write_table)(sample, folder / name)
    shown = succeed("advise", "--master", folder / "words", "--sample", folder / name, "--memory", "1MB")
    assert "predicted from 3,000 rows" in shown


@pytest.mark.parametrize(
    ("memory", "says"),
    [
        ("banana", "'banana' is not a memory size"),
        ("4MB,banana", "'banana' is not a memory size"),
        (",", "give --memory"),
    ],
)
def test_what_is_no_size_is_one_sentence(folder: Path, memory: str, says: str) -> None:
    sample = folder / "sample.parquet"
    assert says in fail("advise", "--master", folder / "products", "--sample", sample, "--memory", memory)


def test_rows_that_are_joined_together_do_not_find_each_other_in_the_cache(folder: Path) -> None:
    rates = []
    for batch_rows in (1_000, 500_000):
        sample = ("--sample", folder / "sample.parquet", "--memory", "16MB", "--rows", 500_000)
        about = ("--batch-rows", batch_rows, "--json")
        shown = succeed("advise", "--master", folder / "products", *sample, *about)
        rates.append(flat_objects(shown)[0]["first_hit_rate"])
    assert rates[0] > rates[1] + 0.05
