"""Addresses name tables, and hold nothing that must not be shown."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from semistream.core.errors import InvalidSettingError
from semistream.master_table import MasterTable
from semistream.store.address import Address

SECRET = "hunter2"


def test_a_path_a_file_address_and_a_table_name_the_same_place(tmp_path: Path) -> None:
    address = Address.of(tmp_path)
    assert address == Address.of(str(tmp_path)) == Address.of(tmp_path.as_uri()) == Address.of(MasterTable(tmp_path))
    assert (address.path, address.name, str(address)) == (tmp_path, tmp_path.name, str(tmp_path))


def test_an_address_elsewhere_keeps_its_text_and_has_no_path() -> None:
    address = Address.of("S3://lake/eu/products/")
    assert (str(address), address.name, address.scheme) == ("s3://lake/eu/products", "products", "s3")
    assert address.absolute() == address == pickle.loads(pickle.dumps(address))
    assert address.real() == "s3://lake/eu/products"
    with pytest.raises(InvalidSettingError, match="has no path"):
        _ = address.path


def test_what_a_path_object_made_of_an_address_is_put_right() -> None:
    assert Address.of(Path("s3://lake/products")) == Address.of("s3://lake/products")


def test_a_relative_path_is_made_absolute_and_links_in_it_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    address = Address.of("link").absolute()
    assert str(address) == str(tmp_path / "link")
    assert address.real() == str((tmp_path / "real").resolve())


@pytest.mark.parametrize(
    "text",
    [
        f"s3://AKIA:{SECRET}@lake/products",
        f"postgresql://shop:{SECRET}@db/shop?table=products",
        f"postgresql://db/shop?table=products&password={SECRET}",
        f"az://container/table?sig={SECRET}",
        f"gs://lake/t?X-Goog-Signature={SECRET}",
    ],
)
def test_an_address_with_a_password_or_key_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidSettingError, match="must not hold a password") as refused:
        Address.of(text)
    assert SECRET not in str(refused.value)
