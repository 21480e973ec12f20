"""Dictionaries, runs and views in a stream join like the plain values they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import semistream as ss
from semistream.core.arrow_row_sizes import row_bits
from semistream.core.plain_types import plain_batches, plain_schema
from semistream.testing import joined_rows

ROWS = 600
_random = np.random.default_rng(7)
_TEXTS = pa.array([f"text {number} " + "x" * (number % 40) for number in _random.integers(0, 50, ROWS)])
_LISTS = pa.array([[int(n)] * (n % 4) if n % 7 else None for n in _random.integers(0, 50, ROWS)], pa.list_(pa.int64()))
_NULLS = pa.array([None if number % 5 == 0 else f"value {number}" for number in range(ROWS)])


def _list_of_dictionaries() -> pa.Array:
    values = pa.array(["a", "bb", None, "cccc"] * ROWS).dictionary_encode()
    return pa.ListArray.from_arrays(np.arange(ROWS + 1, dtype=np.int32) * 2, values)


ODD: dict[str, tuple[pa.Array, pa.DataType]] = {
    "dictionary": (_TEXTS.dictionary_encode(), pa.string()),
    "dictionary with nulls": (_NULLS.dictionary_encode(), pa.string()),
    "dictionary of numbers": (pa.array(_random.integers(0, 9, ROWS)).dictionary_encode(), pa.int64()),
    "dictionary of large strings": (_TEXTS.cast(pa.large_string()).dictionary_encode(), pa.large_string()),
    "dictionary of nothing": (pa.nulls(ROWS, pa.string()).dictionary_encode(), pa.string()),
    "string view": (_NULLS.cast(pa.string_view()), pa.string()),
    "binary view": (_TEXTS.cast(pa.binary()).cast(pa.binary_view()), pa.binary()),
    "list view": (pa.array(_LISTS.to_pylist(), pa.list_view(pa.int64())), pa.list_(pa.int64())),
    "large list view": (pa.array(_LISTS.to_pylist(), pa.large_list_view(pa.int64())), pa.large_list(pa.int64())),
    "runs": (pc.run_end_encode(pa.array(np.arange(ROWS) // 7)), pa.int64()),
    "list of dictionaries": (_list_of_dictionaries(), pa.list_(pa.string())),
    "list view of views": (
        pa.array(
            [["a", None, "b" * 20][: n % 4] if n % 5 else None for n in range(ROWS)], pa.list_view(pa.string_view())
        ),
        pa.list_(pa.string()),
    ),
    "list of list views": (
        pa.array(
            [[[n], None, []][: n % 4] if n % 5 else None for n in range(ROWS)], pa.list_(pa.list_view(pa.int64()))
        ),
        pa.list_(pa.list_(pa.int64())),
    ),
    "fixed lists of views": (
        pa.array([["a", "b" * (n % 30)] if n % 5 else None for n in range(ROWS)], pa.list_(pa.string_view(), 2)),
        pa.list_(pa.string(), 2),
    ),
    "map to views": (
        pa.array(
            [[("a", "b" * (n % 30))] if n % 5 else None for n in range(ROWS)], pa.map_(pa.string(), pa.string_view())
        ),
        pa.map_(pa.string(), pa.string()),
    ),
    "map to list views": (
        pa.array(
            [[("a", [n, None]), ("b", None), ("c", [])][: n % 4] if n % 5 else None for n in range(ROWS)],
            pa.map_(pa.string(), pa.list_view(pa.int64())),
        ),
        pa.map_(pa.string(), pa.list_(pa.int64())),
    ),
    "struct of views": (
        pa.StructArray.from_arrays([_TEXTS.cast(pa.string_view()), _LISTS], ["t", "l"]),
        pa.struct([("t", pa.string()), ("l", pa.list_(pa.int64()))]),
    ),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("odd") / "master"
    keys = np.arange(0, ROWS, 2)
    ss.MasterTable.build(pa.table({"id": keys, "v": [f"v{key}" for key in keys]}), path, "id")
    return path


def _as_list(rows: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(zip(*(rows[name].to_pylist() for name in rows.schema.names), strict=True), key=lambda row: row[0])


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("kind", ODD)
def test_a_column_of_an_odd_type_joins_like_its_plain_values(table: Path, kind: str, how: str) -> None:
    odd, plain = ODD[kind]
    stream = pa.table({"id": np.arange(ROWS), "odd": odd})
    joined = ss.join(stream.to_batches(max_chunksize=100), table, on="id", how=how, memory="2MB").read_all()
    assert joined.schema.field("odd").type == plain
    asked = pa.table({"id": np.arange(ROWS), "odd": pa.array(odd.to_pylist(), plain)})
    found = {key: f"v{key}" for key in range(0, ROWS, 2)}
    expected = [(*row, found.get(row[0])) for row in _as_list(asked) if how == "left" or row[0] in found]
    assert _as_list(joined) == expected


@pytest.mark.parametrize("kind", ["dictionary", "string view", "dictionary of numbers", "runs"])
@pytest.mark.parametrize("algorithm", ["demandjoin", "cachejoin"])
def test_a_key_of_an_odd_type_finds_its_rows(tmp_path: Path, kind: str, algorithm: str) -> None:
    odd, plain = ODD[kind]
    values = pa.array(odd.to_pylist(), plain)
    master = pa.table({"k": pc.unique(values).drop_null(), "v": pa.array(range(len(pc.unique(values).drop_null())))})
    ss.MasterTable.build(master, tmp_path / "m", "k")
    stream = pa.table({"n": np.arange(ROWS), "k": odd})
    joined = ss.join(stream, tmp_path / "m", on="k", memory="2MB", algorithm=algorithm).read_all()
    asked = pa.table({"n": np.arange(ROWS), "k": values})
    assert (
        joined_rows(joined).rows
        == joined_rows(asked.join(master, "k", join_type="inner").select(joined.schema.names)).rows
    )


@pytest.mark.parametrize("kind", ODD)
def test_the_bits_of_a_row_are_those_of_its_plain_values(kind: str) -> None:
    odd, plain = ODD[kind]
    for start, count in ((0, ROWS), (100, 37), (13, 1)):
        some = odd.slice(start, count)
        alone = pa.array(some.to_pylist(), plain)
        bits = row_bits(pa.record_batch([some], names=["odd"]))
        assert np.abs(bits - row_bits(pa.record_batch([alone], names=["odd"]))).max() <= 4, "but for bits of validity"


def test_a_large_dictionary_makes_no_row_too_large(tmp_path: Path) -> None:
    """A slice of a dictionary column keeps the whole dictionary, which is far more than a row may take."""
    texts = [f"{number:06d}" + "x" * 2_000 for number in range(2_000)]
    ss.MasterTable.build(pa.table({"id": list(range(100)), "v": list(range(100))}), tmp_path / "m", "id")
    column = pa.DictionaryArray.from_arrays(pa.array(np.arange(2_000) % 50, pa.int32()), pa.array(texts))
    stream = pa.table({"id": np.arange(2_000) % 100, "odd": column})
    joined = ss.join(stream, tmp_path / "m", on="id", memory="2MB").read_all()
    assert joined.num_rows == 2_000
    assert sorted(joined["odd"].to_pylist()) == sorted(column.to_pylist())


def test_a_dictionary_is_decoded_a_piece_at_a_time() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), pa.array(["x" * 100_000]))
    batch = pa.record_batch([column, pa.array(range(1_000))], names=["odd", "n"])
    sizes, numbers = [], []
    for piece in plain_batches(batch, 1_000_000):
        assert piece.schema.equals(plain_schema(batch.schema))
        sizes.append(piece.column(0).nbytes)
        numbers += piece.column(1).to_pylist()
    assert numbers == list(range(1_000))
    assert max(sizes) <= 1_100_000, "100 MB are never there at once"


def test_a_master_table_of_odd_types_is_built_in_pieces_of_plain_values(tmp_path: Path) -> None:
    texts = ["x" * 5_000, "y" * 7_000, None]
    column = pa.DictionaryArray.from_arrays(pa.array(np.arange(3_000) % 3, pa.int8()), pa.array(texts))
    rows = pa.table({"id": np.arange(3_000), "t": column, "w": pa.array(["w"] * 3_000).cast(pa.string_view())})
    table = ss.MasterTable.build(rows, tmp_path / "m", "id", memory="1MB")
    joined = ss.join(pa.table({"id": [0, 1, 2, 2_999]}), table, on="id").read_all().sort_by("id")
    assert joined["t"].to_pylist() == [texts[0], texts[1], None, None]
    assert joined["w"].to_pylist() == ["w"] * 4


def test_batches_whose_types_differ_only_in_how_values_are_kept_are_one_stream(table: Path) -> None:
    plain = pa.record_batch({"id": [0, 1], "t": ["a", "b"]})
    encoded = pa.record_batch({"id": [2, 3], "t": pa.array(["c", "d"]).dictionary_encode()})
    joined = ss.join([plain, encoded], table, on="id", how="left").read_all()
    assert sorted(joined["t"].to_pylist()) == ["a", "b", "c", "d"]
