"""Places, stores and tables in S3 keep their contracts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from place_contract import PlaceContract
from store_contract import StoreContract
from table_contract import TableContract
from used_tables import ordered_by_use

from semistream.master_table import MasterTable
from semistream.store.contract import MasterStore, StoredTable
from semistream.store.places import object_ranges
from semistream.store.places.choice import place_of
from semistream.store.places.disk_tier import MIN_TIER_BYTES, DiskTier
from semistream.store.places.object_ranges import ObjectRanges
from semistream.store.places.place import Place
from semistream.store.places.tiered_place import TieredPlace
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
        monkeypatch.setattr(ObjectRanges, "gap_bytes", 3000)
        monkeypatch.setattr(object_ranges, "_PIECE_BYTES", 7000)
        monkeypatch.setattr(object_ranges, "_BLOCK_BYTES", 50_000)
        random = np.random.default_rng(seed)
        content = random.integers(0, 256, 400_000, dtype=np.uint8)
        target = place.new_object("data")
        target.write(content.tobytes())
        target.finish()
        lengths = random.integers(1, [10, 3000, 30_000, 300][seed], 60)
        offsets = random.integers(0, len(content) - lengths)
        positions = np.concatenate(([0], np.cumsum(lengths)))
        memory = np.zeros(positions[-1], dtype=np.uint8)
        expected = np.concatenate([content[o : o + n] for o, n in zip(offsets, lengths, strict=True)])
        for _ in range(2):
            place.read_ranges("data", np.stack([offsets, lengths, positions[:-1]], axis=1), memory)
            assert (memory == expected).all()
            memory[:] = 0
        assert place.traffic.remote_requests > 0


class TestTieredPlaceInS3(TestPlaceInS3):
    @pytest.fixture(autouse=True)
    def _tier(self, tmp_path: Path) -> None:
        self.tier = DiskTier(tmp_path / "tier" / "tier", MIN_TIER_BYTES)

    def make(self) -> Place:
        return TieredPlace(super().make(), self.tier)


class TestStoreInS3(InS3, StoreContract):
    def make(self, rows: pa.Table, key: str | list[str], on_duplicate: str = "error") -> MasterStore:
        return MasterTable.build(rows, self.server.address(), key, page_bytes=2048, on_duplicate=on_duplicate).open()


class TestStoreInS3AfterMerges(InS3, StoreContract):
    def make(self, rows: pa.Table, key: str | list[str], on_duplicate: str = "error") -> MasterStore:
        half = rows.slice(0, 0 if on_duplicate == "all" else len(rows) * 2 // 3)
        table = MasterTable.build(half, self.server.address(), key, page_bytes=2048, on_duplicate=on_duplicate)
        table.merge(upserts=rows.slice(len(half)))
        return table.open()


class TestStoreInS3WithATier(InS3, StoreContract):
    @pytest.fixture(autouse=True)
    def _tier(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))

    def make(self, rows: pa.Table, key: str | list[str], on_duplicate: str = "error") -> MasterStore:
        address = self.server.address()
        MasterTable.build(rows, address, key, page_bytes=2048, on_duplicate=on_duplicate)
        return table_at(address, disk_bytes=MIN_TIER_BYTES).open()


class TestStoreInS3ByUseWithATier(TestStoreInS3WithATier):
    def make(self, rows: pa.Table, key: str | list[str], on_duplicate: str = "error") -> MasterStore:
        address = self.server.address()
        half = rows.slice(0, len(rows) if on_duplicate == "all" else len(rows) * 2 // 3)
        table = ordered_by_use(MasterTable.build(half, address, key, page_bytes=2048, on_duplicate=on_duplicate))
        table.merge(upserts=rows.slice(len(half)))
        return table_at(address, disk_bytes=MIN_TIER_BYTES).open()


class TestTableInS3(InS3, TableContract):
    def make(self, rows: pa.Table, key: str) -> StoredTable:
        self.address = self.server.address()
        build(rows, self.address, key, page_bytes=2048)
        return table_at(self.address)

    def change(self, table: StoredTable, rows: pa.Table) -> None:
        assert table.current_version()
        merge(self.address, rows)
