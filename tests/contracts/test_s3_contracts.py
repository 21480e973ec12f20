"""Places, stores and tables in S3 keep their contracts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from place_contract import PlaceContract
from store_contract import StoreContract
from table_contract import TableContract

from semistream.master_table import MasterTable
from semistream.store.contract import MasterStore, StoredTable
from semistream.store.places import object_store
from semistream.store.places.choice import place_of
from semistream.store.places.place import Place
from semistream.store.tables import build, merge, table_at
from servers.s3 import S3Server


class InS3:
    @pytest.fixture(autouse=True)
    def _server(self, s3: S3Server) -> None:
        self.server = s3


class TestPlaceInS3(InS3, PlaceContract):
    def make(self) -> Place:
        return place_of(self.server.address())

    @pytest.mark.parametrize("seed", range(4))
    def test_stretches_come_to_their_places_whether_near_far_repeated_or_long(
        self, place: Place, seed: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(object_store, "GAP_BYTES", 3000)
        monkeypatch.setattr(object_store, "_PIECE_BYTES", 7000)
        monkeypatch.setattr(object_store, "_BLOCK_BYTES", 50_000)
        monkeypatch.setattr(object_store.ObjectStore, "transit_bytes", 60_000)
        random = np.random.default_rng(seed)
        content = random.integers(0, 256, 400_000, dtype=np.uint8)
        target = place.new_object("data")
        target.write(content.tobytes())
        target.finish()
        lengths = random.integers(1, [10, 3000, 30_000, 300][seed], 60)
        offsets = random.integers(0, len(content) - lengths)
        positions = np.concatenate(([0], np.cumsum(lengths)))
        memory = np.zeros(positions[-1], dtype=np.uint8)
        place.read_ranges("data", np.stack([offsets, lengths, positions[:-1]], axis=1), memory)
        expected = np.concatenate([content[o : o + n] for o, n in zip(offsets, lengths, strict=True)])
        assert (memory == expected).all()


class TestStoreInS3(InS3, StoreContract):
    def make(self, rows: pa.Table, key: str | list[str], on_duplicate: str = "error") -> MasterStore:
        return MasterTable.build(rows, self.server.address(), key, page_bytes=2048, on_duplicate=on_duplicate).open()


class TestStoreInS3AfterMerges(InS3, StoreContract):
    def make(self, rows: pa.Table, key: str | list[str], on_duplicate: str = "error") -> MasterStore:
        half = rows.slice(0, 0 if on_duplicate == "all" else len(rows) * 2 // 3)
        table = MasterTable.build(half, self.server.address(), key, page_bytes=2048, on_duplicate=on_duplicate)
        table.merge(upserts=rows.slice(len(half)))
        return table.open()


class TestTableInS3(InS3, TableContract):
    def make(self, rows: pa.Table, key: str) -> StoredTable:
        self.address = self.server.address()
        build(rows, self.address, key, page_bytes=2048)
        return table_at(self.address)

    def change(self, table: StoredTable, rows: pa.Table) -> None:
        assert table.current_version()
        merge(self.address, rows)
