"""A table of PostgreSQL, MySQL or MariaDB as a source: a column that grows tells what has changed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import pyarrow as pa

from semistream.core.durations import parse_seconds
from semistream.core.errors import InvalidSettingError, UnknownColumnError
from semistream.mirrors.database_snapshot import Bound, Snapshot, TableColumns, opened_snapshot
from semistream.mirrors.source_description import Circumstances, MirrorSource, Position, SourceRows, names_of
from semistream.store.database.address import DatabaseAddress, parse_address
from semistream.store.tables import Source

_OVERLAP_SECONDS = 300.0
_OVERLAP_NUMBERS = 10_000
_COMPARE_EVERY = "1 day"
_OWN_OPTIONS = ("grows", "deleted", "overlap", "compare_every")


@dataclass(frozen=True, init=False)
class DatabaseSource(MirrorSource):
    """A table or view of PostgreSQL, MySQL or MariaDB; its password comes from the environment or the driver's files.

    Args:
        address: The table, such as "postgresql://user@host/database?table=products". It must not hold a password:
            PGPASSWORD or ~/.pgpass has it, or MYSQL_PWD or ~/.my.cnf.
        grows: A column that is set to a greater value whenever a row is written, such as a time of change or a number
            from a sequence; it should have an index. Rows without a value in it are read by every refresh. Without
            such a column every refresh compares all rows.
        deleted: A column that marks deleted rows: true, a number other than 0, or for other types anything but null.
            It is not mirrored unless `columns` names it.
        overlap: How far below the greatest value that was seen a refresh begins, because a transaction that commits
            later may have an earlier value: a length of time such as "5 minutes", which is the default, or for a
            column of numbers a number, by default 10,000.
        compare_every: How often all rows are compared instead, such as "1 day", the default: it finds rows that were
            deleted without a mark, and whatever came later than `overlap` allows; "never" for never.
        columns: The columns to mirror; by default all, also those that are added later.
    """

    kind = "database"
    tells_changes = True
    uses_spark = True
    address: str
    grows: str | None
    deleted: str | None
    overlap: str | int | None
    compare_every: str
    columns: tuple[str, ...] | None

    def __init__(
        self,
        address: str,
        grows: str | None = None,
        deleted: str | None = None,
        overlap: str | int | None = None,
        compare_every: str = _COMPARE_EVERY,
        columns: Sequence[str] | None = None,
    ) -> None:
        if isinstance(overlap, str) and not overlap.isdigit():
            parse_seconds(overlap)
        if compare_every != "never" and not parse_seconds(compare_every):
            raise InvalidSettingError("compare_every is 0: give a length of time, or 'never'.")
        for name, value in (
            ("address", address),
            ("grows", grows),
            ("deleted", deleted),
            ("overlap", int(overlap) if isinstance(overlap, str) and overlap.isdigit() else overlap),
            ("compare_every", compare_every),
            ("columns", names_of(columns)),
        ):
            object.__setattr__(self, name, value)
        self._place(("key",))

    def described(self) -> dict[str, Any]:
        """Return the address, which has no password, and what was set."""
        described: dict[str, Any] = {"address": self.address}
        for name in ("grows", "deleted", "overlap"):
            if getattr(self, name) is not None:
                described[name] = getattr(self, name)
        if self.compare_every != _COMPARE_EVERY:
            described["compare_every"] = self.compare_every
        return described if self.columns is None else {**described, "columns": list(self.columns)}

    @classmethod
    def of_address(cls, address: str) -> DatabaseSource:
        """Return the table at an address, whose options may also be arguments such as grows=updated_at."""
        parts = urlsplit(address)
        options = parse_qsl(parts.query, keep_blank_values=True)
        own = {name: value for name, value in options if name in _OWN_OPTIONS}
        rest = urlencode([(name, value) for name, value in options if name not in _OWN_OPTIONS])
        return cls(urlunsplit(parts._replace(query=rest)), **own)

    @contextmanager
    def all_rows(self, circumstances: Circumstances) -> Iterator[SourceRows]:
        """Read all rows of one snapshot, which also tells the greatest value so far; for a first load by Spark."""
        with self._snapshot(circumstances.key) as snapshot:
            everything = self._everything(snapshot)
            if circumstances.spark is None or circumstances.schema is not None:
                yield everything
                return
            from semistream.mirrors.database_ranges import read_by_spark

            place, columns = self._place(circumstances.key), self._columns(snapshot.table)
            with read_by_spark(circumstances.spark, place, snapshot, columns, self.deleted) as found:
                if found is None:
                    yield everything
                    return
                yield replace(
                    everything, rows=found.rows, expected_bytes=found.expected_bytes, in_ranges=found.in_ranges
                )

    @contextmanager
    def rows_since(self, position: Position, circumstances: Circumstances) -> Iterator[SourceRows | None]:
        """Read rows from a little below the greatest value on, or all of them when that is due."""
        with self._snapshot(circumstances.key) as snapshot:
            columns = self._columns(snapshot.table)
            if self.grows is None or position.get("watermark") is None or self._is_due(position):
                yield self._everything(snapshot)
                return
            watermark = _later(self._watermark(snapshot), position["watermark"])
            bound = Bound(self.grows, self._begin(position["watermark"], snapshot.table), with_null=True)
            schema = snapshot.table.schema_of(columns)
            keys = list(circumstances.key)
            gone = None
            if self.deleted is not None:
                # Few rows are deleted between two refreshes; both queries share the connection.
                marked = snapshot.rows(keys, bound, self.deleted, is_marked=True)
                gone = pa.Table.from_batches(list(marked), snapshot.table.schema_of(keys))
            rows = Source(schema, snapshot.rows(columns, bound, self.deleted, is_marked=False), None)
            moved = {**position, "watermark": watermark}
            yield SourceRows(rows, schema, moved, whole=False, deletes=gone)

    def _everything(self, snapshot: Snapshot) -> SourceRows:
        columns = self._columns(snapshot.table)
        schema = snapshot.table.schema_of(columns)
        position = {"watermark": self._watermark(snapshot), "compared": datetime.now(UTC).isoformat(timespec="seconds")}
        rows = Source(schema, snapshot.rows(columns, None, self.deleted, is_marked=False), None)
        return SourceRows(rows, schema, position)

    @contextmanager
    def _snapshot(self, key: tuple[str, ...]) -> Iterator[Snapshot]:
        place = self._place(key)
        with opened_snapshot(place) as snapshot:
            for name in filter(None, (self.grows, self.deleted, *(self.columns or ()), *key)):
                if name not in snapshot.table:
                    raise UnknownColumnError(
                        f"{place.table_name} has no column {name!r}: it has {snapshot.table.names}."
                    )
            yield snapshot

    def _place(self, key: tuple[str, ...]) -> DatabaseAddress:
        """Return what connects to the server; the key is that of the mirror and not one of the address."""
        parts = urlsplit(self.address)
        options = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != "key"]
        query = urlencode([*options, *(("key", name) for name in key)])
        return parse_address(urlunsplit(parts._replace(query=query)))

    def _columns(self, table: TableColumns) -> list[str]:
        return list(self.columns) if self.columns is not None else [name for name in table if name != self.deleted]

    def _is_due(self, position: Position) -> bool:
        if self.compare_every == "never":
            return False
        compared = position.get("compared")
        then = datetime.fromisoformat(compared).timestamp() if compared else 0.0
        return not 0 <= time.time() - then < parse_seconds(self.compare_every)

    def _watermark(self, snapshot: Snapshot) -> Mapping[str, Any] | None:
        """Return the greatest value, but none in the future: rows after it would not be seen for long."""
        if self.grows is None:
            return None
        kind = snapshot.table.type_of(self.grows)
        if not (pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            raise InvalidSettingError(
                f"The column {self.grows!r} is {kind}: name a column of whole numbers, dates or times that grows."
            )
        greatest, now = snapshot.greatest(self.grows)
        if greatest is None:
            return None
        if isinstance(greatest, datetime):
            # A time without a zone may be that of any zone.
            limit = now if greatest.tzinfo is not None else now.replace(tzinfo=None) + timedelta(days=1)
            return {"time": min(greatest, limit).isoformat()}
        if isinstance(greatest, date):
            return {"date": min(greatest, now.date() + timedelta(days=1)).isoformat()}
        return {"number": int(greatest)}

    def _begin(self, watermark: Mapping[str, Any], table: TableColumns) -> Any:
        """Return the value to begin with: the watermark less the overlap."""
        overlap = self.overlap
        if "number" in watermark:
            if isinstance(overlap, str):
                raise InvalidSettingError(f"overlap is {overlap!r}, but {self.grows!r} has numbers: give a number.")
            return watermark["number"] - (_OVERLAP_NUMBERS if overlap is None else overlap)
        seconds = _OVERLAP_SECONDS if overlap is None else parse_seconds(overlap)
        if "date" in watermark:
            return date.fromisoformat(watermark["date"]) - timedelta(days=1 + int(seconds // 86_400))
        begin = datetime.fromisoformat(watermark["time"]) - timedelta(seconds=seconds)
        return begin if table.type_of(self.grows or "").tz is not None else begin.replace(tzinfo=None)


def _later(one: Mapping[str, Any] | None, other: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the greater of two watermarks; that of a table whose newest rows were removed goes back."""
    if one is None or one.keys() != other.keys():
        return other if one is None else one
    ((name, value),) = one.items()
    before = other[name]
    if name == "time":
        return one if datetime.fromisoformat(value) >= datetime.fromisoformat(before) else other
    return one if value >= before else other
