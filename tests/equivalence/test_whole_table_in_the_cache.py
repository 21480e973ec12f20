"""A cache that holds the whole master table knows which keys are absent."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import semistream as ss
from semistream.algorithms.registry import ALGORITHMS

MASTER_ROWS, STREAM_ROWS = 28, 5_000


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name != "oracle"])
@pytest.mark.parametrize("kind", [pa.string(), pa.list_(pa.string())], ids=str)
def test_absent_keys_leave_without_a_match_whatever_the_cached_rows_are(
    algorithm: str, kind: pa.DataType, tmp_path: Path
) -> None:
    texts = [str(number) * 300 for number in range(MASTER_ROWS)]
    values = texts if kind == pa.string() else [[text] for text in texts]
    table = pa.table({"key": list(range(MASTER_ROWS)), "value": pa.array(values, kind)})
    master = ss.MasterTable.build(table, tmp_path / "master", key="key")
    keys = [number % (2 * MASTER_ROWS) for number in range(STREAM_ROWS)]
    stream = pa.table({"key": keys, "text": ["x" * 200] * STREAM_ROWS})
    joined = ss.join(stream, master, on="key", how="left", memory="4MB", algorithm=algorithm).read_all()
    assert joined.num_rows == STREAM_ROWS
    expected = dict(zip(range(MASTER_ROWS), values, strict=True))
    assert all(row["value"] == expected.get(row["key"]) for row in joined.select(["key", "value"]).to_pylist())
