"""The data of the peers: rows follow from their numbers, and checks see every difference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_peers import small_bench
from hypothesis import given
from hypothesis import strategies as st

from semistream.core.errors import InvalidSettingError
from semistream.generator.zipf import IntegralZipf
from semistream.master_table import MasterTable
from semistream_lab.peers.data import (
    PAYLOAD,
    STREAM_COLUMNS,
    Joined,
    PeerData,
    Situation,
    expected,
    master_rows,
    stream_keys,
    stream_rows,
    with_payload,
)
from semistream_lab.peers.paged_master import paged_master

COLUMNS = (*STREAM_COLUMNS, *PAYLOAD)


def situation(master_rows: int = 1000, zipf: float = 1.0) -> Situation:
    """Return a small situation."""
    return Situation.of(master_rows, 100, "16MB", zipf, 2)


@given(
    master_rows=st.integers(1, 3_000_000),
    zipf=st.sampled_from([0.0, 0.5, 1.0, 1.7]),
    first=st.integers(0, 10**10),
)
def test_every_stream_key_has_a_master_row(master_rows: int, zipf: float, first: int) -> None:
    keys = stream_keys(situation(master_rows, zipf), np.arange(first, first + 200))
    assert keys.min() >= 0
    assert keys.max() < master_rows


@pytest.mark.parametrize("zipf", [0.0, 0.8, 1.0])
def test_stream_keys_are_as_frequent_as_their_law_says(zipf: float) -> None:
    count = 200_000
    frequencies = np.bincount(stream_keys(situation(50, zipf), np.arange(count)), minlength=50)
    wanted = IntegralZipf(50, zipf).probabilities() * count
    # Ranks are spread over the keys, so both are compared by size; five standard deviations.
    assert np.all(np.abs(np.sort(frequencies) - np.sort(wanted)) < 5 * np.sqrt(np.sort(wanted)) + 60)


def test_neighbours_in_the_stream_are_independent() -> None:
    keys = stream_keys(situation(1000, 0.0), np.arange(100_000)).astype(np.float64)
    for lag in (1, 2, 1000):
        assert abs(np.corrcoef(keys[:-lag], keys[lag:])[0, 1]) < 0.02


def test_master_rows_do_not_depend_on_how_they_are_cut(tmp_path: Path) -> None:
    bench = small_bench(tmp_path, master_rows=250_000)
    whole = master_rows(np.arange(250_000))
    assert pa.concat_tables(bench.data.chunks()).equals(whole)
    picked = np.array([249_999, 7, 100_000])
    assert master_rows(picked).equals(whole.take(picked))
    assert len(set(whole.column("text").to_pylist())) == 250_000
    bench.data.build_parquet()
    assert pq.read_table(bench.data.parquet).equals(whole)


def test_what_was_not_finished_is_built_again_and_what_was_is_kept(tmp_path: Path) -> None:
    data = small_bench(tmp_path).data
    calls: list[str] = []

    def broken(path: Path) -> None:
        path.write_text("half")
        raise OSError("disk full")

    def whole(path: Path) -> None:
        calls.append("whole")
        path.write_text("whole")

    with pytest.raises(OSError, match="disk full"):
        data.built("thing", broken)
    assert data.built("thing", whole).read_text() == "whole"
    assert data.built("thing", whole).read_text() == "whole"
    assert calls == ["whole"]


@given(order=st.randoms(use_true_random=False))
def test_a_checksum_does_not_depend_on_the_order_of_rows(order: object) -> None:
    rows = with_payload(stream_rows(situation(), 5, 50))
    places = list(range(50))
    order.shuffle(places)  # type: ignore[attr-defined]
    assert Joined.of(rows.take(places), COLUMNS) == expected(situation(), 5, 50, joined=True)


@given(column=st.sampled_from(COLUMNS), place=st.integers(0, 49))
def test_a_checksum_sees_one_value_that_is_missing(column: str, place: int) -> None:
    rows = with_payload(stream_rows(situation(), 0, 50))
    number = rows.schema.get_field_index(column)
    values = rows.column(column).to_pylist()
    values[place] = None if column != "value" else 1000
    changed = rows.set_column(number, column, pa.array(values, rows.schema.field(column).type))
    assert Joined.of(changed, COLUMNS) != Joined.of(rows, COLUMNS)


def test_a_checksum_sees_two_rows_that_have_swapped_their_payload() -> None:
    rows = with_payload(stream_rows(situation(), 0, 50))
    places = [1, 0, *range(2, 50)]
    swapped = rows.select(STREAM_COLUMNS)
    for name in PAYLOAD:
        swapped = swapped.append_column(name, rows.column(name).take(places))
    assert rows.column("key")[0] != rows.column("key")[1]
    assert Joined.of(swapped, COLUMNS) != Joined.of(rows, COLUMNS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"master_rows": 0},
        {"batch_rows": 2**31},
        {"zipf": -1.0},
        {"zipf": float("nan")},
        {"cores": 0},
        {"page_bytes": 1},
    ],
)
def test_a_situation_without_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidSettingError):
        Situation.of(**{"master_rows": 10, "batch_rows": 10, "memory": "16MB", "zipf": 1.0, "cores": 2, **wrong})


def test_each_size_of_pages_has_a_master_table_of_its_own(tmp_path: Path) -> None:
    small, usual = (
        paged_master(PeerData(Situation.of(1000, 10, "16MB", 1.0, 2, page_bytes), tmp_path))
        for page_bytes in (1024, None)
    )
    pages = [MasterTable(folder).info()["pages"] for folder in (small, usual)]
    assert pages[0] > 6 * pages[1]
