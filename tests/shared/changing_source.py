"""A source of mirrors in memory that knows what has changed since any position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import pyarrow as pa

from semistream.core.errors import SemistreamError
from semistream.mirrors import sources
from semistream.mirrors.source_description import Circumstances, MirrorSource, Position, SourceRows

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string())])


class ChangingSource(MirrorSource):
    """Rows by key, and a log of keys that have changed; a position is a place in the log."""

    kind = "changing"
    named: ClassVar[dict[str, ChangingSource]] = {}

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: dict[int, str] = {}
        self.log: list[int] = []
        self.is_away = False
        self.schema = SCHEMA
        self.given_rows = 0
        self.named[name] = self
        sources._KINDS[self.kind] = type(self)

    def put(self, key: int, value: str | None) -> None:
        """Set the value of a key, or remove it."""
        self.log.append(key)
        if value is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = value

    def described(self) -> dict[str, Any]:
        """Return the name."""
        return {"name": self.name}

    @classmethod
    def of_description(cls, description: Mapping[str, Any]) -> ChangingSource:
        """Return the source of a name."""
        return cls.named[description["name"]]

    @classmethod
    def of_address(cls, address: str) -> ChangingSource:
        """Return the source of a name."""
        return cls.named[address]

    @contextmanager
    def all_rows(self, circumstances: Circumstances) -> Iterator[SourceRows]:
        """Give all rows."""
        del circumstances
        yield SourceRows(self._table(list(self.rows)), self.schema, {"log": len(self.log)})

    @contextmanager
    def rows_since(self, position: Position, circumstances: Circumstances) -> Iterator[SourceRows | None]:
        """Give what the log has since the position, and some of what it had before."""
        if self.is_away:
            raise SemistreamError("The source is away: wait.")
        if len(self.log) == position["log"] and self.schema == circumstances.schema:
            yield None
            return
        keys = list(dict.fromkeys(self.log[max(0, position["log"] - 3) :]))
        changed = [key for key in keys if key in self.rows]
        gone = pa.table({"k": pa.array([key for key in keys if key not in self.rows], pa.int64())})
        yield SourceRows(self._table(changed), self.schema, {"log": len(self.log)}, whole=False, deletes=gone)

    def _table(self, keys: list[int]) -> pa.Table:
        self.given_rows += len(keys)
        columns: dict[str, Any] = {"k": keys, "v": [self.rows[key] for key in keys]}
        columns |= {name: [None] * len(keys) for name in self.schema.names if name not in columns}
        return pa.table({name: columns[name] for name in self.schema.names}, schema=self.schema)
