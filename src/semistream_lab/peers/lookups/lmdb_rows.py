"""Look-up in LMDB, a memory-mapped file beside the job."""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semistream_lab.peers.contract import Bench
from semistream_lab.peers.lookups.lookup import LookupPeer, RowSource, packed, rows_of, unpacked
from semistream_lab.peers.lookups.lru_rows import Row
from semistream_lab.peers.optional_package import why_missing

_KEY = struct.Struct(">Q")
_MAX_BYTES_A_ROW = 400
_SPARE_BYTES = 2**26


@dataclass(frozen=True)
class LmdbRows(RowSource):
    """Packed rows by their keys."""

    path: Path

    def rows(self, keys: Sequence[int]) -> dict[int, Row]:
        """Return the rows of the keys, in one transaction."""
        with _environment(self.path).begin(buffers=False) as transaction:
            values = [(key, transaction.get(_KEY.pack(key))) for key in keys]
        return {key: unpacked(value) for key, value in values if value is not None}


class LmdbLookup(LookupPeer):
    """The fastest of the stores that people embed; its pages count as memory of the worker, but the kernel's."""

    name = "lmdb"
    summary = "mapInPandas, LRU of rows, LMDB behind it"

    def why_unavailable(self) -> str | None:
        """Return one sentence if the package is missing."""
        return why_missing("lmdb")

    def prepare(self, bench: Bench) -> None:
        """Write the file."""
        import lmdb

        def write(path: Path) -> None:
            size = bench.data.situation.master_rows * _MAX_BYTES_A_ROW + _SPARE_BYTES
            # Unlocked, because the file is written once and only read afterwards.
            with lmdb.open(str(path), map_size=size, subdir=False, lock=False, sync=False) as environment:
                for chunk in bench.data.chunks():
                    with environment.begin(write=True) as transaction:
                        pairs = ((_KEY.pack(key), packed(row)) for key, row in rows_of(chunk))
                        transaction.cursor().putmulti(pairs, append=True)

        self._source = LmdbRows(bench.data.built("lmdb", write))

    def source(self) -> LmdbRows:
        """Return the file."""
        return self._source


@functools.cache
def _environment(path: Path) -> Any:
    """Return the open file of this process."""
    import lmdb

    return lmdb.open(str(path), subdir=False, readonly=True, lock=False, readahead=False)
