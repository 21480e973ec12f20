"""The master table as semistream has it."""

from __future__ import annotations

from pathlib import Path

from semistream.peers.data import PeerData
from semistream.store.master_table import MasterTable


def paged_master(data: PeerData) -> Path:
    """Build the master table in pages unless it is there, and return its folder."""

    def build(folder: Path) -> None:
        MasterTable.build(data.build_parquet(), folder, "key", page_bytes=page_bytes)

    page_bytes = data.situation.page_bytes
    return data.built("paged" if page_bytes is None else f"paged-in-{page_bytes}", build)
