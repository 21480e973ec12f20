"""Reads what the pipeline has written: the Delta table by its log, and the numbers of the last batch."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass
class Warehouse:
    """A Delta table in a folder, to which one pipeline appends a micro-batch a commit."""

    folder: Path
    files: dict[int, list[str]] = field(default_factory=dict)
    """The files of each micro-batch."""
    commits: dict[int, float] = field(default_factory=dict)
    """When each micro-batch was committed, in seconds since 1970."""
    rows: int = 0
    _next: int = 0

    def look(self) -> None:
        """Take notice of new commits; each is a file of JSON lines."""
        while (commit := self.folder / "_delta_log" / f"{self._next:020d}.json").exists():
            actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
            batches = [int(action["txn"]["version"]) for action in actions if "txn" in action]
            added = [action["add"] for action in actions if "add" in action]
            if added:
                (batch,) = batches
                self.commits[batch] = commit.stat().st_mtime
                self.files.setdefault(batch, []).extend(unquote(each["path"]) for each in added)
                self.rows += sum(json.loads(each["stats"])["numRecords"] for each in added)
            self._next += 1

    def table(self) -> pa.Table:
        """Return all rows, and for each the micro-batch that wrote it."""
        tables = []
        for batch, names in sorted(self.files.items()):
            for name in names:
                rows = pq.read_table(self.folder / name, partitioning=None)
                tables.append(rows.append_column("batch", pa.array([batch] * rows.num_rows, pa.int64())))
        return pa.concat_tables(tables)


class Statistics:
    """The JSON lines that the pipeline writes after each batch, one for each join."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read_bytes = 0
        self._rest = b""
        self.last: list[dict[str, Any]] = []
        """Those of the newest batch."""

    def look(self) -> None:
        """Read what is new."""
        if not self._file.exists():
            return
        with self._file.open("rb") as file:
            file.seek(self._read_bytes)
            new = file.read()
        self._read_bytes += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:
                continue  # the pipeline was killed in the middle of a line
            if self.last and self.last[-1]["batch_id"] != row["batch_id"]:
                self.last = []
            self.last.append(row)

    def sum(self, name: str) -> int:
        """Return a number of the newest batch, of all joins together."""
        return sum(int(row.get(name) or 0) for row in self.last)

    def first(self, name: str) -> Any:
        """Return a number of the newest batch that all joins have in common."""
        return self.last[0].get(name) if self.last else None
