"""Every place keeps the contract."""

from __future__ import annotations

from pathlib import Path

import pytest
from far_folder import tiered_folder
from place_contract import PlaceContract

from semistream.store.places.disk_tier import MIN_TIER_BYTES
from semistream.store.places.local_folder import LocalFolder
from semistream.store.places.place import Place


class TestLocalFolder(PlaceContract):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path) -> None:
        self.directory = tmp_path

    def make(self) -> Place:
        return LocalFolder(self.directory / "place")


class TestTieredFolder(TestLocalFolder):
    def make(self) -> Place:
        return tiered_folder(self.directory, MIN_TIER_BYTES)
