"""TPC-H customers and orders: how they are made and used again, and that a join of them is right."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from joined_rows import assert_joined_as_duckdb_does

import semistream as ss
from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream_lab.workload import tpch

SCALE = 0.02
CUSTOMERS, ORDERS = 3_000, 30_000
_INSTALLED = shutil.which("tpchgen-cli", path=sysconfig.get_path("scripts")) or shutil.which("tpchgen-cli")
needs_the_package = pytest.mark.skipif(_INSTALLED is None, reason="the extra `tpch` is not installed")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tpch.TpchFiles:
    return tpch.generate(tmp_path_factory.mktemp("tpch"), SCALE)


@needs_the_package
def test_tables_have_the_rows_of_their_scale_and_columns_that_joins_take(files: tpch.TpchFiles) -> None:
    customers, orders = files.customers().read_all(), files.order_rows().read_all()
    assert (customers.num_rows, orders.num_rows) == (CUSTOMERS, ORDERS)
    assert customers["c_custkey"].to_pylist() == list(range(1, CUSTOMERS + 1))
    assert not any(pa.types.is_string_view(field.type) for table in (customers, orders) for field in table.schema)
    assert 150 < customers.nbytes / CUSTOMERS < 250, "about the 223 bytes that the papers give a customer"


@needs_the_package
def test_no_order_asks_for_a_customer_whose_key_is_a_multiple_of_three(files: tpch.TpchFiles) -> None:
    keys = files.order_keys().draw(ORDERS)
    assert not np.any(keys % 3 == 0)
    assert len(np.unique(keys)) > 0.6 * CUSTOMERS, "nearly all others have orders"
    assert np.bincount(keys).max() < 8 * ORDERS / CUSTOMERS, "none has many more than others"


@needs_the_package
def test_keys_are_those_of_the_orders_and_begin_again_at_their_end(files: tpch.TpchFiles) -> None:
    expected = files.order_rows().read_all()["o_custkey"].to_numpy()
    keys = files.order_keys()
    drawn = np.concatenate([keys.draw(count) for count in (7, ORDERS - 7, 0, ORDERS, 5)])
    np.testing.assert_array_equal(drawn, np.concatenate([expected, expected, expected[:5]]))


@needs_the_package
def test_a_master_table_is_built_from_customers(files: tpch.TpchFiles, tmp_path: Path) -> None:
    master = ss.MasterTable.build(files.customers(), tmp_path / "customers", key=tpch.CUSTOMER_KEY)
    assert master.info()["rows"] == CUSTOMERS


@needs_the_package
def test_orders_with_customers_are_the_rows_of_duckdb(files: tpch.TpchFiles, tmp_path: Path) -> None:
    customers = files.customers().read_all().rename_columns({"c_custkey": "o_custkey"})
    rows = assert_joined_as_duckdb_does(files.order_rows().read_all(), customers, ["o_custkey"], tmp_path)
    assert rows.num_rows == ORDERS
    assert rows["c_name"].null_count == 0


@needs_the_package
def test_files_that_are_there_are_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tpch.generate(tmp_path, 0.01)
    written = first.orders.stat().st_mtime_ns
    commands = _watched(monkeypatch)
    first.customer.unlink()
    assert tpch.generate(tmp_path, 0.01) == first
    assert [command[command.index("--tables") + 1] for command in commands] == ["customer"]
    assert first.customer.exists()
    assert first.orders.stat().st_mtime_ns == written
    assert sorted(path.name for path in first.orders.parent.iterdir()) == ["customer.parquet", "orders.parquet"]


@needs_the_package
def test_another_scale_has_files_of_its_own(files: tpch.TpchFiles) -> None:
    other = tpch.generate(files.customer.parents[1], 0.01)
    assert other.customer != files.customer
    assert files.customer.exists()


def test_a_foreign_file_in_the_place_of_a_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tpch-1").mkdir()
    (tmp_path / "tpch-1" / "customer.parquet").write_bytes(b"no table")
    with pytest.raises(InvalidSettingError, match="remove it, and it is made again"):
        tpch.generate(tmp_path, 1)


def test_a_generation_that_fails_says_why_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: "false")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1, "", "disk\nfull"))
    with pytest.raises(SemistreamError, match="could not make the tables: disk full"):
        tpch.generate(tmp_path, 1)
    assert list((tmp_path / "tpch-1").iterdir()) == []


def test_a_missing_package_is_named_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(SemistreamError, match=r"install it with `pip install 'semistream\[tpch\]'`"):
        tpch.generate(tmp_path, 1)


@pytest.mark.parametrize("scale", [0, -1, float("nan")])
def test_a_scale_is_a_number_above_zero(tmp_path: Path, scale: float) -> None:
    with pytest.raises(InvalidSettingError, match="scale must be a number above 0"):
        tpch.generate(tmp_path, scale)


def _watched(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    commands: list[list[str]] = []
    run = subprocess.run

    def watched(command: list[str], **options: Any) -> Any:
        commands.append(command)
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", watched)
    return commands
