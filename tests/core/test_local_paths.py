"""Paths may be file: addresses; of any other address only the scheme is told."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import semistream as ss
from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.core.local_paths import local_path_of, scheme_of

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("products", "products"),
        ("/data/products", "/data/products"),
        ("a:b", "a:b"),
        ("/data/a:/b", "/data/a:/b"),
        ("file:///data/products", "/data/products"),
        ("file:/data/products", "/data/products"),
        ("FILE:///data/products", "/data/products"),
        ("file://localhost/data/pro%20ducts", "/data/pro ducts"),
    ],
)
def test_a_path_or_a_file_address_is_a_path(text: str, path: str) -> None:
    assert local_path_of(text, "Tables") == Path(path)
    assert local_path_of(Path(text), "Tables") == Path(path) or text.startswith(("file://l", "FILE"))


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://shop:{SECRET}@db/products",
        f"jdbc:postgresql://shop:{SECRET}@db/products",
        f"jdbc:postgresql://db/products?user=shop&password={SECRET}",
        f"jdbc:oracle:thin:shop/{SECRET}@db",
        f"jdbc:sqlserver://db;password={SECRET}",
        f"abfss://c@a.dfs.core.windows.net/x?sig={SECRET}",
        f"file://{SECRET}/share",
    ],
)
def test_no_error_repeats_an_address(address: str, tmp_path: Path) -> None:
    calls = (
        lambda place: ss.MasterTable(place),
        lambda place: ss.join(pa.table({"id": [1]}), place, on="id"),
        lambda place: ss.MasterTable.build(place, tmp_path / "m", "id"),
        lambda place: ss.MasterTable.build(pa.table({"id": [1]}), place, "id"),
    )
    for call in calls:
        for place in (address, Path(address)) if not address.startswith("file") else (address,):
            with pytest.raises(SemistreamError) as raised:
                call(place)
            assert isinstance(raised.value, InvalidSettingError)
            assert SECRET not in str(raised.value)
            assert str(raised.value).count(scheme_of(address) or "") >= 1


def test_a_table_at_a_file_address_is_built_opened_and_joined(tmp_path: Path) -> None:
    address = (tmp_path / "my products").as_uri()
    assert "%20" in address
    table = ss.MasterTable.build(pa.table({"id": [1], "v": ["x"]}), address, "id")
    assert table.path == tmp_path / "my products"
    assert ss.MasterTable(address).version == 1
    assert ss.join(pa.table({"id": [1]}), address, on="id").read_all().to_pylist() == [{"id": 1, "v": "x"}]
