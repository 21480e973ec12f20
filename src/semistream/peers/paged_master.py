"""The master table as semistream has it."""

from __future__ import annotations

from pathlib import Path

from semistream.peers.data import PeerData
from semistream.store.master_table import MasterTable
from semistream.store.paged_file.build import DEFAULT_PAGE_BYTES


def paged_master(data: PeerData) -> Path:
    """Build the master table in pages unless it is there, and return its folder."""

    def build(folder: Path) -> None:
        MasterTable.build(data.build_parquet(), folder, "key", page_bytes=page_bytes)

    page_bytes = data.situation.page_bytes
    return data.built("master" if page_bytes == DEFAULT_PAGE_BYTES else f"master-in-{page_bytes}", build)
