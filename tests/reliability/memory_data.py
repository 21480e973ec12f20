"""Master tables and streams that are hard on a memory budget, made batch by batch so that making them takes little."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from semistream.generator import ZipfKeys
from semistream.master_table import MasterTable

TABLES = ("plain", "wide", "hot fat rows", "growing", "nested", "3,000 matches", "1,000,000 matches")
STREAMS = ("20 bytes", "200 bytes", "growing to 2 kB", "300 kB")
FAT_BYTES = 96_000
FAT_ONE_IN = 100
GROWN_BYTES = 4_000
TABLE_SHARE = 10
"""Tables are so many times larger than the budget."""
MATCHES = {"3,000 matches": 3_000, "1,000,000 matches": 1_000_000}
MANY_SHARE = {"3,000 matches": 0.01, "1,000,000 matches": 0.0001}
"""The share of the stream that asks for the key with many matches."""
_SEED = 11
_ROW_BYTES = {
    "plain": 120,
    "wide": 600,
    "hot fat rows": 120 + FAT_BYTES // FAT_ONE_IN,
    "growing": 40 + GROWN_BYTES // 2,
    "nested": 320,
    "3,000 matches": 120,
    "1,000,000 matches": 120,
}
_STREAM_ROW_BYTES = {"20 bytes": 20, "200 bytes": 200, "growing to 2 kB": 1_000, "300 kB": 300_000}
_BATCH_BYTES = 4_000_000


def row_count(kind: str, budget_bytes: int) -> int:
    """Return how many rows, or keys, a table has that is ten times larger than the budget."""
    return max(200, TABLE_SHARE * budget_bytes // _ROW_BYTES[kind])


def many_key(kind: str, budget_bytes: int) -> int:
    """Return the key that has many rows besides its own, if one has."""
    return row_count(kind, budget_bytes) // 2


def hottest_key(keys: int, exponent: float) -> int:
    """Return the key that a stream asks for most often."""
    drawn = ZipfKeys(keys, exponent, seed=_SEED, ranks="shuffled").draw(20_000)
    values, counts = np.unique(drawn, return_counts=True)
    return int(values[counts.argmax()])


def bytes_out_per_tuple(table: str, stream: str, exponent: float) -> float:
    """Return about what a tuple adds to the output of a join."""
    master_bytes: float = _ROW_BYTES[table]
    if table == "hot fat rows" and exponent:
        master_bytes += 0.1 * FAT_BYTES
    matches = 1 + MANY_SHARE.get(table, 0) * MATCHES.get(table, 0)
    return matches * (_STREAM_ROW_BYTES[stream] + master_bytes)


def build(kind: str, budget_bytes: int, folder: Path) -> Path:
    """Return a table that is there afterwards; one that was built before is used again."""
    path = folder / f"{kind.replace(' ', '-').replace(',', '')}-{budget_bytes}"
    if not path.exists():
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        MasterTable.build(master_batches(kind, budget_bytes), unfinished, key="key", on_duplicate="all")
        unfinished.rename(path)
    return path


def master_batches(kind: str, budget_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table."""
    keys = row_count(kind, budget_bytes)
    step = max(1, _BATCH_BYTES // _ROW_BYTES[kind])
    hot = hottest_key(keys, 1.0)
    for start in range(0, keys, step):
        yield _rows(kind, np.arange(start + 1, min(keys, start + step) + 1, dtype=np.int64), keys, hot)
    if kind in MATCHES:
        for _ in range(0, MATCHES[kind], 1_000):
            yield _rows(kind, np.full(1_000, many_key(kind, budget_bytes), dtype=np.int64), keys, hot)


def stream_batches(
    stream: str, table: str, budget_bytes: int, exponent: float, tuples: int, seed: int
) -> Iterator[pa.RecordBatch]:
    """Yield stream rows in batches of about a 64th of the budget, the user's own memory."""
    keys = row_count(table, budget_bytes)
    zipf = ZipfKeys(keys, exponent, seed=_SEED, ranks="shuffled")
    random = np.random.default_rng(seed)
    step = max(1, min(20_000, budget_bytes // 64 // _STREAM_ROW_BYTES[stream]))
    for start in range(0, tuples, step):
        drawn = zipf.draw(min(step, tuples - start))
        if table in MATCHES:
            drawn[random.random(len(drawn)) < MANY_SHARE[table]] = many_key(table, budget_bytes)
        number = np.arange(start, start + len(drawn), dtype=np.int64)
        columns: dict[str, object] = {"key": drawn, "number": number, "quantity": (number % 7).astype(np.int32)}
        if stream == "200 bytes":
            columns["note"] = _strings(np.full(len(drawn), 170))
        elif stream == "growing to 2 kB":
            columns["note"] = _strings(number * 2_000 // tuples)
        elif stream == "300 kB":
            columns["note"] = _strings(np.full(len(drawn), 300_000))
        yield pa.record_batch(columns)


def _rows(kind: str, keys: np.ndarray, key_count: int, hot: int) -> pa.RecordBatch:
    columns: dict[str, object] = {"key": keys, "supplier": keys % 1000}
    if kind == "wide":
        columns |= {f"number_{index}": keys * index for index in range(30)}
        columns |= {f"text_{index}": _strings(keys % 40 + 10) for index in range(10)}
    elif kind == "hot fat rows":
        columns["name"] = _strings(np.where(keys % FAT_ONE_IN == hot % FAT_ONE_IN, FAT_BYTES, 80))
    elif kind == "growing":
        columns["name"] = _strings(keys * GROWN_BYTES // key_count)
    elif kind == "nested":
        columns["tags"] = _lists(keys)
        columns["place"] = pa.StructArray.from_arrays([pa.array(keys * 0.5), _strings(keys % 60 + 60)], ["x", "label"])
    else:
        short = kind == "1,000,000 matches" and keys[0] == keys[-1]
        columns["name"] = _strings(np.full(len(keys), 0 if short else 88))
    return pa.record_batch(columns)


def _lists(keys: np.ndarray) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum(keys % 12))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), _strings(np.full(int(offsets[-1]), 20)))


def _strings(lengths: np.ndarray) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    letters = np.full(int(offsets[-1]), ord("x"), dtype=np.uint8)
    return pa.Array.from_buffers(pa.string(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(letters)])
