"""Joins of real data, as semistream and as DuckDB do them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

import semistream as ss


def assert_joined_as_duckdb_does(
    stream: pa.Table, master: pa.Table, on: list[str], folder: Path, *, how: str = "left", unique: bool = True
) -> pa.Table:
    """Compare all rows of a join, which has to number the rows of the stream, and return them."""
    numbered = stream.append_column("row", pa.array(range(stream.num_rows), pa.int64()))
    added = [name for name in master.schema.names if name not in on]
    taken = {name: f"master_{name}" if name in stream.schema.names else name for name in added}
    ss.MasterTable.build(master, folder / "master", key=on, on_duplicate="error" if unique else "all")
    joined = ss.join(
        numbered.to_batches(max_chunksize=10_000),
        ss.MasterTable(folder / "master"),
        on=on,
        how=how,
        memory="16MB",
        suffix="_master",
    ).read_all()
    renamed = [
        taken[name.removesuffix("_master")] if name.endswith("_master") else name for name in joined.schema.names
    ]
    columns = ", ".join(["s.*", *(f'm."{name}" as "{taken[name]}"' for name in added)])
    condition = " and ".join(f's."{name}" = m."{name}"' for name in on)
    with duckdb.connect() as database:
        database.sql("set timezone = 'UTC'")
        database.register("s", numbered)
        database.register("m", master)
        expected = database.sql(f"select {columns} from s {how} join m on {condition}").to_arrow_table()
        ours = joined.rename_columns(renamed).select(expected.schema.names)
        database.register("found", ours)
        database.register("expected", expected)
        for one, other in (("found", "expected"), ("expected", "found")):
            assert database.sql(f"select * from {one} except all select * from {other}").fetchall() == []
    return ours
