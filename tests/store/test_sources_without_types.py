"""Files that cannot say what their columns are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import fail

import semistream as ss
from semistream.core.errors import InvalidSettingError


def test_a_csv_with_a_header_alone_is_told_that_it_has_no_types(tmp_path: Path) -> None:
    file = tmp_path / "products.csv"
    file.write_text("id,name\n")
    with pytest.raises(InvalidSettingError, match=r"products.csv has a header but no rows, so its columns have no"):
        ss.MasterTable.build(file, tmp_path / "m", "id")
    assert not (tmp_path / "m").exists()
    assert "has a header but no rows" in fail("master", "build", file, "--to", tmp_path / "m", "--key", "id")


def test_a_file_at_a_file_address_is_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "rows.parquet")
    table = ss.MasterTable.build((tmp_path / "rows.parquet").as_uri(), tmp_path / "m", "id")
    assert table.info()["rows"] == 2
