"""The command that compiles beforehand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_FIRST_JOIN = """
import pyarrow as pa, semistream as ss
from semistream.core.compile import compiled_count
numbers = list(range(5_000))
words = [f"word {number}" for number in numbers]
products = pa.table({"sku": words, "price": pa.array(numbers, pa.float64()), "name": words})
ss.MasterTable.build(products, "products", "sku")
assert ss.join(pa.table({"sku": words, "quantity": numbers}), "products", on="sku").read_all().num_rows == 5_000
print(compiled_count())
"""


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kernels")}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=500, check=True)


@pytest.mark.slow
def test_a_join_after_it_compiles_nothing_and_a_join_without_it_says_that_it_does(tmp_path: Path) -> None:
    warmed, cold = tmp_path / "warmed", tmp_path / "cold"
    warmed.mkdir()
    cold.mkdir()
    assert _run(warmed, "-m", "semistream", "warmup").stdout.startswith("Compiled")
    assert _run(warmed, "-m", "semistream", "warmup").stdout.startswith("Nothing to do")
    joined = _run(warmed, "-c", _FIRST_JOIN)
    assert (joined.stdout.strip(), joined.stderr) == ("0", "")
    without = _run(cold, "-c", _FIRST_JOIN)
    assert int(without.stdout) > 10
    assert without.stderr.count("`semistream warmup` does it beforehand") == 1
