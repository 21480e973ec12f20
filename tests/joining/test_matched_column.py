"""`matched` adds a column to a left join that says which rows have found a match."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import semistream as ss
from semistream.core.errors import InvalidSettingError, NameClashError

STREAM = pa.table({"n": range(40), "k": pa.array([None if n % 9 == 0 else n % 13 for n in range(40)], pa.int64())})
MASTER = pa.table({"id": [1, 2, 3, 5, 7, 11, 2], "v": ["a", "b", None, "d", None, "f", "g"]})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("matched") / "master"
    ss.MasterTable.build(MASTER, path, "id", on_duplicate="all")
    return path


def _rows(joined: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(map(repr, zip(*(column.to_pylist() for column in joined.columns), strict=True)))


def _expected() -> list[tuple[Any, ...]]:
    known = MASTER.append_column("is_known", pa.array([True] * MASTER.num_rows))
    joined = STREAM.join(known, keys="k", right_keys="id", join_type="left outer").select(["n", "k", "v", "is_known"])
    filled = joined["is_known"].fill_null(False)
    return _rows(joined.set_column(3, "is_known", filled))


@pytest.mark.parametrize("algorithm", ["demandjoin", "cachejoin", "meshjoin", "p-cachejoin"])
def test_the_column_is_true_where_arrow_finds_a_row(table: Path, algorithm: str) -> None:
    joined = ss.join(STREAM, table, on={"k": "id"}, how="left", matched="is_known", algorithm=algorithm, memory="4MB")
    assert joined.schema is not None
    assert joined.schema.field("is_known").type == pa.bool_()
    whole = joined.read_all()
    assert whole.schema.names == ["n", "k", "v", "is_known"]
    assert not whole["is_known"].null_count
    assert _rows(whole) == _expected()


def test_text_and_composite_keys_tell_a_match_as_well(tmp_path: Path) -> None:
    master = pa.table({"a": ["x", "y"], "b": pa.array([1, 2], pa.int16()), "v": [None, "z"]}).cast(
        pa.schema([("a", pa.string()), ("b", pa.int16()), ("v", pa.string())])
    )
    ss.MasterTable.build(master, tmp_path / "m", ["a", "b"])
    stream = pa.table({"a": ["x", "x", "y"], "b": pa.array([1, 2, 2], pa.int16())})
    joined = ss.join(stream, tmp_path / "m", on=["a", "b"], how="left", matched="known", columns=[]).read_all()
    assert sorted(joined.to_pylist(), key=repr) == [
        {"a": "x", "b": 1, "known": True},
        {"a": "x", "b": 2, "known": False},
        {"a": "y", "b": 2, "known": True},
    ]


def test_a_key_that_is_asked_for_is_there_beside_it(table: Path) -> None:
    joined = ss.join(STREAM, table, on={"k": "id"}, how="left", columns=["id"], matched="known").read_all()
    assert joined.schema.names == ["n", "k", "id", "known"]
    assert all((row["id"] is not None) == row["known"] for row in joined.to_pylist())


def test_a_name_that_is_there_and_another_kind_of_join_are_refused(table: Path) -> None:
    for name in ("v", "n"):
        with pytest.raises(NameClashError, match=f"already a column '{name}'"):
            ss.join(STREAM, table, on={"k": "id"}, how="left", matched=name)
    for how in ("inner", "semi", "anti"):
        with pytest.raises(InvalidSettingError, match="matched is for left joins"):
            ss.join(STREAM, table, on={"k": "id"}, how=how, matched="known")
    for name in ("", 5):
        with pytest.raises(InvalidSettingError, match="name of a new column"):
            ss.join(STREAM, table, on={"k": "id"}, how="left", matched=name)  # type: ignore[arg-type]
