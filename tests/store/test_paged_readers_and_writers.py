"""Readers that work while writers do."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pyarrow as pa

from semistream.master_table import MasterTable


def test_readers_see_whole_versions_while_others_merge_and_vacuum(tmp_path: Path) -> None:
    """Every version holds one value in all rows, so that a mixture of versions would show."""
    count = 2000

    def rows(value: int) -> pa.Table:
        return pa.table({"id": np.arange(count), "value": np.full(count, value), "text": ["x" * 30] * count})

    table = MasterTable.build(rows(0), tmp_path / "t", "id", page_bytes=1024)
    stop = threading.Event()
    faults: list[BaseException] = []
    seen: set[int] = set()

    def look() -> None:
        try:
            while not stop.is_set():
                with table.open() as store:
                    pages = store.read(np.array([0]), np.array([store.page_count - 1]))
                    values = pages.take(np.arange(count), ["value"]).column(0).unique().to_pylist()
                    assert len(values) == 1
                    seen.add(values[0])
        except BaseException as fault:
            faults.append(fault)

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    for value in range(1, 25):
        table.merge(rows(value))
        if value % 2:
            table.vacuum(keep_for=0)
    stop.set()
    for reader in readers:
        reader.join()
    assert not faults
    assert len(seen) > 2
