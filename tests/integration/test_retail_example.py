"""The retail example: its pipeline file is sound, and a short run proves its result."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import semistream as ss
from semistream.pipeline import read_description
from semistream.pipeline.checked_start import check_sources
from servers.left_out import left_out_if_missing

sys.path.append(str(Path(__file__).parents[2] / "examples" / "retail"))

import proof as retail_proof
from proof import NotProvedError
from server_process import needed_jars

RETAIL = Path(__file__).parents[2] / "examples" / "retail"
CUSTOMERS = "postgresql://reader@127.0.0.1:1/shop?table=customers"


def test_the_pipeline_file_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSTOMERS", CUSTOMERS)
    with socket.create_server(("127.0.0.1", 0)) as broker:  # all that is asked of a broker before Spark is there
        monkeypatch.setenv("KAFKA_SERVERS", f"127.0.0.1:{broker.getsockname()[1]}")
        description = read_description(RETAIL / "pipeline.toml")
        check_sources(description)
    assert [dimension.unmatched for dimension in description.dimensions] == ["park", "park"]
    assert description.dimensions[0].mirror is not None
    assert isinstance(description.dimensions[0].mirror.source, ss.DatabaseSource)
    assert description.dimensions[1].table == "s3://lake/products"
    assert description.sink.format == "delta"


def test_the_pipeline_file_says_all_that_differs_from_place_to_place_by_the_environment() -> None:
    text = (RETAIL / "pipeline.toml").read_text()
    assert set(re.findall(r'env = "(\w+)"', text)) == {"KAFKA_SERVERS", "CUSTOMERS"}
    assert "127.0.0.1" not in text


ORDERS = pa.table(
    {
        "order_id": [0, 1, 2, 3],
        "customer_id": [1, 2, 900, 1],
        "sku": ["a", "b", "a", "c"],
        "quantity": pa.array([1, 2, 1, 3], pa.int32()),
        "from_collection": [False, False, False, True],
    }
)
PRODUCTS = pa.table(
    {"sku": ["a", "b", "c"], "product": ["A", "B", "C"], "category": ["x"] * 3, "price": [1.5, 2.0, 4.0]}
)
HISTORY = pa.table(
    {
        "customer_id": [1, 2, 1],
        "revision": [0, 0, 1],
        "segment": ["new", "new", "gold"],
        "city": ["Nelson", "Napier", "Nelson"],
    }
)
ROWS: dict[str, list[Any]] = {
    "order_id": [0, 1, 3],
    "customer_id": [1, 2, 1],
    "sku": ["a", "b", "c"],
    "quantity": [1, 2, 3],
    "segment": ["new", "new", "new"],
    "city": ["Nelson", "Napier", "Nelson"],
    "revision": [0, 0, 0],
    "product": ["A", "B", "C"],
    "category": ["x"] * 3,
    "price": [1.5, 2.0, 4.0],
    "total": [1.5, 4.0, 12.0],
    "batch": [4, 5, 6],
}


@pytest.fixture
def customers(tmp_path: Path) -> ss.MasterTable:
    """Return a mirror with a version after each transaction of the history."""
    table = ss.MasterTable.build(HISTORY.slice(0, 2), tmp_path / "customers", key="customer_id")
    table.merge(HISTORY.slice(2))
    return table


def proved(customers: ss.MasterTable, parked: int = 1, **changes: list[Any]) -> retail_proof.Proof:
    rows = pa.table({**ROWS, **changes})
    rows = rows.set_column(3, "quantity", rows["quantity"].cast(pa.int32()))
    return retail_proof.prove(ORDERS, PRODUCTS, HISTORY, rows, parked, customers, {4: 1, 5: 2, 6: 2}, 900)


def test_a_warehouse_that_is_right_is_proved(customers: ss.MasterTable) -> None:
    proof = proved(customers)
    assert (proof.orders, proof.parked, proof.versions, proof.pinned) == (4, 1, 2, 3)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"order_id": [0, 1, 1]}, "1 orders are lost, and 1 are there more than once"),
        ({name: values[:2] for name, values in ROWS.items()}, "1 orders are lost"),
        ({"parked": 0}, "0 orders are parked, but 1 have no customer"),
        ({"price": [1.5, 2.0, 4.5]}, "the column price is wrong in 1 orders"),
        ({"product": ["A", None, "C"]}, "the column product is wrong in 1 orders"),
        ({"total": [1.5, 4.0, 11.0]}, "the column total is wrong"),
        ({"segment": ["gold", "new", "new"]}, "1 combinations of a customer's columns have never been there"),
        ({"segment": ["gold", "new", "new"], "revision": [1, 0, 0]}, "1 orders of micro-batch 4 have a customer of"),
        ({"batch": [5, 5, 6]}, "1 orders of micro-batch 5 have a customer of another version"),
    ],
)
def test_whatever_is_wrong_is_not_proved(customers: ss.MasterTable, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(NotProvedError, match=sentence):
        proved(customers, **changes)


def test_a_mirror_that_is_no_moment_of_the_database_is_not_proved(customers: ss.MasterTable) -> None:
    customers.restore(1)
    half = {**HISTORY.slice(2).to_pydict(), "city": ["Dunedin"]}
    customers.merge(pa.table(half))
    with pytest.raises(NotProvedError, match="version 4 of the customers is not the table after transaction 1"):
        retail_proof.prove(ORDERS, PRODUCTS, HISTORY, pa.table(ROWS), 1, customers, {4: 1, 5: 4}, 900)


@pytest.mark.slow
def test_a_short_run_proves_its_result_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with left_out_if_missing():
        for jars in ("broker", "kafka", "delta"):
            needed_jars(jars)
    command = [sys.executable, str(RETAIL / "run.py"), "--seconds", "30", "--rate", "500"]
    done = subprocess.run(
        [*command, "--folder", str(tmp_path / "kept")], capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "was killed by SIGKILL" in done.stdout
    assert done.stdout.rstrip().endswith("Proved.")
    left = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False)
    assert left.stdout == ""
